"""A model of the user's loads from every kind of file with what its card says."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torchvision import models

from pinprick import BadInput
from pinprick.zoo import load_model
from pinprick.zoo.saved_folder import save_model
from zoo.conftest import CARD


def write_card(folder: Path) -> None:
    (folder / "card.json").write_text(CARD.as_json())


def agrees(path: Path, net: nn.Module, images: Tensor) -> bool:
    model = load_model(f"file:{path}")
    with torch.no_grad():
        return torch.equal(model(images), net((images - 0.1) / 0.3))


@pytest.mark.parametrize("shard_mb", [15, 0.05])
def test_what_was_saved_is_loaded(
    net: nn.Module, digits: Tensor, tmp_path: Path, shard_mb: float
) -> None:
    save_model(net, CARD, tmp_path, shard_mb=shard_mb)
    assert agrees(tmp_path, net, digits)
    assert agrees(next(tmp_path.glob("model.safetensors*")), net, digits)


def test_a_card_gives_preprocessing_classes_and_size(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    model = load_model(f"file:{tmp_path}")
    assert (model.mean, model.std) == (CARD.mean, CARD.std)
    assert model.classes == CARD.classes
    assert model.size == (28, 28)
    assert model.name == f"file:{tmp_path}"
    assert model.prepare(Image.new("RGB", (60, 40), "white")).shape == (1, 28, 28)
    assert isinstance(model.net, nn.Module)
    assert not model.net.training


def test_half_precision_is_float32_once_loaded(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path, half=True)
    found = load_model(f"file:{tmp_path}").net
    assert isinstance(found, nn.Module)
    assert {tensor.dtype for tensor in found.parameters()} == {torch.float32}
    for mine, theirs in zip(net.parameters(), found.parameters(), strict=True):
        assert torch.equal(mine.half(), theirs.half())


def test_a_file_alone_has_its_card_in_its_header(
    net: nn.Module, digits: Tensor, tmp_path: Path
) -> None:
    save_model(net, CARD, tmp_path)
    alone = tmp_path / "alone" / "digits.safetensors"
    alone.parent.mkdir()
    (tmp_path / "model.safetensors").rename(alone)
    assert agrees(alone, net, digits)


def test_the_card_beside_a_file_goes_before_the_one_in_it(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    edited = {**json.loads(CARD.as_json()), "classes": [f"digit {i}" for i in range(10)]}
    (tmp_path / "card.json").write_text(json.dumps(edited))
    assert load_model(f"file:{tmp_path}").class_name(3) == "digit 3"


@pytest.mark.parametrize("key", [None, "state_dict", "model", "model_state_dict", "net"])
@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod."])
def test_checkpoints_of_training_loops_are_understood(
    net: nn.Module, digits: Tensor, tmp_path: Path, key: str | None, prefix: str
) -> None:
    state = {prefix + name: tensor for name, tensor in net.state_dict().items()}
    write_card(tmp_path)
    torch.save(state if key is None else {"epoch": 3, key: state}, tmp_path / "last.pth")
    assert agrees(tmp_path / "last.pth", net, digits)


@pytest.mark.slow
def test_a_checkpoint_as_the_imagenet_example_of_torch_writes_it_is_read(tmp_path: Path) -> None:
    """The layout of the weights that the authors of Fast-AT published."""
    net = models.resnet50(num_classes=7)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    content = {
        "epoch": 15,
        "arch": "resnet50",
        "state_dict": nn.DataParallel(net).state_dict(),
        "best_prec1": torch.tensor(60.9),
        "optimizer": optimiser.state_dict(),
    }
    torch.save(content, tmp_path / "model_best.pth.tar", _use_new_zipfile_serialization=False)
    card = {"net": "torchvision:resnet50", "classes": 7, "size": [32, 32], "resize": 36}
    card |= {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    (tmp_path / "card.json").write_text(json.dumps(card))
    images = torch.rand(2, 3, 32, 32)
    mean, std = (torch.tensor(card[key]).view(3, 1, 1) for key in ("mean", "std"))
    with torch.no_grad():
        wanted = net.eval()((images - mean) / std)
        for given in (tmp_path, tmp_path / "model_best.pth.tar"):
            torch.testing.assert_close(load_model(f"file:{given}")(images), wanted)


def test_the_older_format_of_torch_is_read(net: nn.Module, digits: Tensor, tmp_path: Path) -> None:
    write_card(tmp_path)
    torch.save(net.state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert agrees(tmp_path / "old.pt", net, digits)


def test_counters_of_batches_may_be_missing(tmp_path: Path) -> None:
    net = models.resnet18(num_classes=2)
    state = {k: v for k, v in net.state_dict().items() if "num_batches" not in k}
    save_file(state, tmp_path / "model.safetensors")
    card = {"net": "torchvision:resnet18", "classes": ["cat", "dog"], "size": [64, 64]}
    (tmp_path / "card.json").write_text(json.dumps(card))
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        found = load_model(f"file:{tmp_path}")(images)
        assert torch.equal(found, net.eval()(images))


@pytest.mark.parametrize("name", ["googlenet", "squeezenet1_1"])
def test_a_card_may_name_a_network_of_torchvision(name: str, tmp_path: Path) -> None:
    options = {"init_weights": False} if name == "googlenet" else {}
    net = models.get_model(name, num_classes=3, **options).eval()
    card = {"net": f"torchvision:{name}", "classes": 3, "size": [64, 64], "resize": 72}
    save_file(net.state_dict(), tmp_path / "mine.safetensors")
    (tmp_path / "card.json").write_text(json.dumps(card))
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(load_model(f"file:{tmp_path}")(images), net(images))


def test_a_card_may_name_a_network_of_timm(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    net = timm.create_model("test_resnet", num_classes=3, in_chans=1).eval()
    card = {"net": "timm:test_resnet", "classes": 3, "size": [64, 64], "channels": 1}
    save_file(net.state_dict(), tmp_path / "mine.safetensors")
    (tmp_path / "card.json").write_text(json.dumps(card))
    images = torch.rand(2, 1, 64, 64)
    with torch.no_grad():
        assert torch.equal(load_model(f"file:{tmp_path}")(images), net(images))


def test_loading_leaves_the_random_numbers_alone(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    load_model(f"file:{tmp_path}")
    assert torch.equal(torch.rand(1), wanted)


def test_the_home_folder_can_be_abbreviated(
    net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    save_model(net, CARD, tmp_path / "mine")
    assert load_model("file:~/mine").name == "file:~/mine"


def test_a_folder_must_hold_one_model(net: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="files of models there: none"):
        load_model(f"file:{tmp_path}")
    for name in ("a.pt", "b.pt"):
        torch.save(net.state_dict(), tmp_path / name)
    with pytest.raises(BadInput, match=r"should hold one model, .*: a\.pt, b\.pt"):
        load_model(f"file:{tmp_path}")


@pytest.mark.parametrize(
    ("name", "message"),
    [("none.pt", "there is no file or folder"), ("notes.txt", r"those end in \.safetensors")],
)
def test_a_path_that_is_no_model_is_said(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(BadInput, match=message):
        load_model(f"file:{tmp_path / name}")
