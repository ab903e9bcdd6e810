"""Whatever lies in the folder of a model, it loads or is refused in one line, in little memory."""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from pinprick import PinprickError
from pinprick.zoo import load_model
from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model
from zoo.conftest import CARD

INDEX = "model.safetensors.index.json"
WEIGHTS = "model.safetensors"
DEEP = "[" * 100_000 + "]" * 100_000
_MOST_MB = 300


def said(path: Path, *, trust: bool = False) -> str:
    """What the refusal says; empty if a model was loaded and answers."""
    try:
        model = load_model(f"file:{path}", trust=trust)
        assert model.size is not None
        channels = len(model.mean or (0,))
        with torch.no_grad():
            model(torch.zeros(1, channels, *model.size))
    except PinprickError as error:
        message = str(error)
    else:
        return ""
    assert "\n" not in message
    assert message.isprintable()
    assert 0 < len(message) < 1000
    return message


def edited(folder: Path, **entries: Any) -> Path:
    """The folder, with some entries of its card changed; what is a bytes is put there as it is."""
    path = folder / "card.json"
    card = {**json.loads(path.read_text()), **entries}
    raw = {key: value for key, value in card.items() if isinstance(value, bytes)}
    text = json.dumps({**card, **dict.fromkeys(raw, "RAW")})
    for value in raw.values():
        text = text.replace('"RAW"', value.decode())
    path.write_text(text)
    return folder


@pytest.fixture
def folder(net: nn.Module, tmp_path: Path) -> Path:
    save_model(net, CARD, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"mean": b"[NaN]"}, "numbers must be finite"),
        ({"std": b"[Infinity]"}, "numbers must be finite"),
        ({"mean": b"[1e999]"}, "numbers must be finite"),
        ({"mean": [10**400]}, "mean must lie between"),
        ({"mean": [1e30]}, "mean must lie between"),
        ({"std": [1e-30]}, "std must lie between"),
        ({"std": [1e30]}, "std must lie between"),
        ({"facts": b"NaN"}, "numbers must be finite"),
        ({"facts": {"data": "\ud800"}}, "no Unicode"),
        ({"facts": DEEP.encode()}, "nested too deeply"),
        ({"classes": b"1" + b"0" * 5000}, "is not JSON"),
        ({"classes": 99_999}, "10 x 100 in the file and 99999 x 100 in the network"),
        ({"classes": ["a"] * 100_001}, "at most 100000 classes"),
        ({"size": [10**9, 10**9]}, "at most 4096"),
        ({"size": [10**400, 4]}, "at most 4096"),
        ({"size": [1, 1]}, "mnist_cnn does not take images of 1 x 1 x 1, as its card says"),
        ({"size": [4096, 4096]}, "mnist_cnn does not take images of 1 x 4096 x 4096"),
        ({"resize": 10**9}, "at most"),
        ({"channels": 10**30}, "1 or 3 channels"),
        ({"net": "x" * 10_000_000}, "no network is called"),
        ({"y" * 10_000_000: 1}, "no entry of"),
        ({"net": "torch\nvision:resnet18"}, "torchvision:NAME"),
        ({"net": "torchvision:regnet_y_128gf", "channels": 3, "mean": None, "std": None}, "fit"),
        ({"net": "torchvision:vgg19", "channels": 3, "mean": None, "std": None}, "fit"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_card_that_asks_for_the_impossible_is_refused(
    folder: Path, entries: dict[str, Any], message: str
) -> None:
    before = _peak()
    assert message in said(edited(folder, **entries))
    assert _peak() - before < _MOST_MB


@pytest.mark.parametrize(
    "text", [DEEP, '{"weight_map": ' + DEEP + "}", '{"metadata": ' + DEEP + ', "weight_map": {}}']
)
def test_an_index_that_is_nested_too_deeply_is_refused(folder: Path, text: str) -> None:
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(text)
    assert "nested too deeply" in said(folder)


def test_a_card_in_a_header_is_looked_at_as_closely(net: nn.Module, tmp_path: Path) -> None:
    for text in (DEEP, "[NaN]", "{}"):
        save_file(net.state_dict(), tmp_path / WEIGHTS, {"pinprick": text})
        assert "the header of" in said(tmp_path)


@pytest.mark.parametrize(
    ("net_name", "size", "channels", "message"),
    [
        ("torchvision:squeezenet1_1", (4, 4), 3, "does not take images of 3 x 4 x 4"),
        ("torchvision:squeezenet1_1", (64, 64), 1, "does not take images of 1 x 64 x 64"),
        ("resnet20", (1, 1), 3, ""),
    ],
)
def test_a_size_that_the_network_cannot_take_is_said(
    tmp_path: Path, net_name: str, size: tuple[int, int], channels: int, message: str
) -> None:
    from pinprick.zoo.from_card import build

    card = ModelCard(
        net=net_name, classes=("a", "b"), mean=None, std=None, size=size, channels=channels
    )
    save_model(build(card), card, tmp_path)
    found = said(edited(tmp_path, mean=[0.5] * channels, std=[0.5] * channels))
    assert message in found
    assert bool(message) == bool(found)


def test_names_of_tensors_from_elsewhere_stay_on_the_line(folder: Path) -> None:
    save_file({"a\n\x1b[31m": torch.zeros(1), "b" * 100_000: torch.zeros(1)}, folder / WEIGHTS)
    edited(folder, sha256={})
    assert "the network has no" in said(folder)
    (folder / WEIGHTS).unlink()
    for shard in ("a\nb.safetensors", "c" * 100_000 + ".safetensors"):
        (folder / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))
        assert said(folder)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2,)])
def test_scales_that_do_not_fit_their_weights_are_refused(
    folder: Path, shape: tuple[int, ...]
) -> None:
    weights = {"a\n": torch.zeros(3, 2, dtype=torch.int8), "a\n.scale": torch.zeros(shape)}
    save_file(weights, folder / WEIGHTS)
    edited(folder, sha256={})
    assert "does not hold one scale per output channel" in said(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.to("meta"),
        lambda tensor: tensor.to_sparse(),
        lambda tensor: tensor.to(torch.complex64),
        lambda tensor: torch.zeros(1).expand(10**12),
    ],
    ids=["meta", "sparse", "complex", "expanded"],
)
def test_tensors_of_other_kinds_are_refused(
    net: nn.Module, folder: Path, change: Callable[[Tensor], Tensor]
) -> None:
    (folder / WEIGHTS).unlink()
    state = net.state_dict()
    torch.save({**state, "0.weight": change(state["0.weight"])}, folder / "model.pt")
    assert said(folder)


def test_an_archive_that_unpacks_to_far_more_is_refused(net: nn.Module, folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    big = {"0.weight": torch.zeros(20_000_000)}
    torch.save(big, folder / "stored.pt")
    with (
        zipfile.ZipFile(folder / "stored.pt") as stored,
        zipfile.ZipFile(folder / "model.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    (folder / "stored.pt").unlink()
    assert "unpacks to" in said(folder)


def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    assert "~nobody-of-this-name" in said(Path("~nobody-of-this-name/model"))
    assert "File name too long" in said(Path("x" * 100_000))
    if os.geteuid():
        (tmp_path / "shut").mkdir(mode=0)
        assert said(tmp_path / "shut")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
ENTRIES = ("net", "classes", "mean", "std", "size", "channels", "resize", "interpolation", "facts")


@pytest.fixture(scope="module")
def whole() -> Callable[[], tuple[bytes, bytes]]:
    with TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        save_model(build_net("mnist_cnn"), CARD, folder)
        read = (Path(folder) / "card.json").read_bytes(), (Path(folder) / WEIGHTS).read_bytes()
    return lambda: read


@pytest.mark.slow
@settings(max_examples=60)
@given(entry=st.sampled_from((*ENTRIES, "sha256")), value=JSON)
def test_any_entry_of_a_card_may_hold_anything(
    whole: Callable[[], tuple[bytes, bytes]], entry: str, value: Any
) -> None:
    card, weights = whole()
    with TemporaryDirectory() as folder:
        (Path(folder) / "card.json").write_text(json.dumps({**json.loads(card), entry: value}))
        (Path(folder) / WEIGHTS).write_bytes(weights)
        said(Path(folder))


@settings(max_examples=100)
@given(data=st.data())
def test_any_byte_of_any_file_may_be_another(
    whole: Callable[[], tuple[bytes, bytes]], data: st.DataObject
) -> None:
    files = dict(zip(("card.json", WEIGHTS), whole(), strict=True))
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    start = data.draw(st.integers(0, min(len(content), 3000) - 1))  # headers are where it hurts
    new = data.draw(st.binary(min_size=1, max_size=8))
    content[start : start + data.draw(st.integers(0, 8))] = new
    if data.draw(st.booleans()):  # or a card without a digest, as older ones are
        card = json.loads(files["card.json"])
        card.pop("sha256", None)
        files["card.json"] = json.dumps(card).encode()
    with TemporaryDirectory() as folder:
        for file, held in {**files, name: bytes(content)}.items():
            (Path(folder) / file).write_bytes(held)
        said(Path(folder))


def _peak() -> float:
    """The most memory that this process has held so far, in MB."""
    try:
        import resource
    except ModuleNotFoundError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
