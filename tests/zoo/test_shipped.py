"""Shipped models: what lies in the folder can be loaded, and says of itself what its card says."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from pinprick import UnknownName, load_data
from pinprick.zoo import load_model, shipped
from pinprick.zoo.saved_folder import save_model
from zoo.conftest import CARD


@pytest.fixture
def folder(net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    for name in ("zeta", "alpha"):
        save_model(net, CARD, tmp_path / name, half=True)
    (tmp_path / "not-a-model").mkdir()
    return tmp_path


def test_what_is_in_the_folder_is_listed(folder: Path) -> None:
    assert shipped.names() == ["alpha", "zeta"]
    assert shipped.card("alpha") == CARD


def test_a_shipped_model_is_half_on_disk_and_whole_once_loaded(
    folder: Path, net: nn.Module, digits: Tensor
) -> None:
    model = load_model("pinprick:alpha")
    assert model.name == "pinprick:alpha"
    assert model.classes == CARD.classes
    with torch.no_grad():
        wanted = net.half().float()((digits - 0.1) / 0.3)
        assert torch.equal(model(digits), wanted)


def test_unknown_names_offer_the_nearest(folder: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean alpha"):
        load_model("pinprick:alhpa")
    with pytest.raises(UnknownName, match="did you mean pinprick:alpha"):
        load_model("alpha")
    with pytest.raises(UnknownName, match="no shipped model is called 'beta'"):
        shipped.card("beta")


def test_without_the_folder_nothing_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "none")
    assert shipped.names() == []


@pytest.mark.parametrize("name", shipped.names() or [pytest.param("", marks=pytest.mark.skip)])
def test_every_shipped_model_answers(name: str) -> None:
    model = load_model(f"pinprick:{name}")
    card = shipped.card(name)
    with torch.no_grad():
        logits = model(torch.zeros(1, card.channels, *card.size))
    assert logits.shape == (1, len(card.classes))
    assert logits.isfinite().all()


def test_a_shipped_model_knows_real_pictures() -> None:
    data, model = load_data("fashion_sample"), load_model("pinprick:fashion_cnn")
    with torch.no_grad():
        right = (model(data.images()).argmax(dim=1) == data.labels).float().mean()
    assert right > 0.85  # 91.8 % of the whole test set, says its card


def test_the_shipped_models_are_small() -> None:
    assert sum(file.stat().st_size for file in shipped.FOLDER.rglob("*.*")) < 4e6


@pytest.mark.slow
def test_a_shipped_model_loads_without_the_compiler_of_torch() -> None:
    """Its import takes longer than all else."""
    code = (
        "import sys; from pinprick import load_model\n"
        "load_model('pinprick:cifar10_resnet20'); load_model('pinprick:mnist_cnn')\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
