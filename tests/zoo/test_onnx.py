"""An ONNX file is a model that gives scores: its layout, size and batch are read from the graph."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from pinprick import BadInput, MissingExtra, run_attack
from pinprick.attacks import PGD
from pinprick.zoo import load_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

Axis = int | str | None


def write(
    path: Path,
    shape: Sequence[Axis] = ("batch", 3, 8, 8),
    *,
    kind: Any = None,
    outputs: Sequence[str] = ("scores",),
    rank: int = 2,
) -> Tensor:
    """A linear model of four classes as a graph, and its weights."""
    from onnx import TensorProto, helper, numpy_helper

    kind = TensorProto.FLOAT if kind is None else kind
    weights = np.random.default_rng(0).normal(size=(192, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["images"], ["values"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["values"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["class"], axis=1, keepdims=0),
    ]
    known = {
        "scores": helper.make_tensor_value_info(
            "scores", TensorProto.FLOAT, ["batch", 4] if rank == 2 else ["batch"]
        ),
        "class": helper.make_tensor_value_info("class", TensorProto.INT64, ["batch"]),
    }
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("images", kind, shape)],
        [known[name] for name in outputs],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return torch.from_numpy(weights)


@pytest.fixture
def images() -> Tensor:
    pixels = torch.randint(0, 256, (5, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    return pixels / 255


def test_scores_are_those_of_the_graph(tmp_path: Path, images: Tensor) -> None:
    weights = write(tmp_path / "m.onnx")
    model = load_model(f"file:{tmp_path / 'm.onnx'}")
    torch.testing.assert_close(model(images), images.flatten(1) @ weights)
    assert model.access == "scores"
    assert model.size == (8, 8)
    assert model.name == f"file:{tmp_path / 'm.onnx'}"
    assert model.prepare(Image.new("RGB", (20, 30))).shape == (3, 8, 8)


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_fixed_batch_takes_any_number_of_images(
    tmp_path: Path, images: Tensor, batch: int, count: int
) -> None:
    weights = write(tmp_path / "m.onnx", (batch, 3, 8, 8))
    model = load_model(f"file:{tmp_path / 'm.onnx'}")
    torch.testing.assert_close(model(images[:count]), images[:count].flatten(1) @ weights)


def test_no_images_have_no_scores(tmp_path: Path, images: Tensor) -> None:
    write(tmp_path / "m.onnx")
    assert load_model(f"file:{tmp_path / 'm.onnx'}")(images[:0]).shape == (0, 4)


@pytest.mark.parametrize("shape", [("batch", 8, 8, 3), (2, 8, 8, 3), (None, None, None, 3)])
def test_channels_may_come_last(tmp_path: Path, images: Tensor, shape: tuple[Axis, ...]) -> None:
    weights = write(tmp_path / "m.onnx", shape)
    model = load_model(f"file:{tmp_path / 'm.onnx'}")
    flat = images.permute(0, 2, 3, 1).flatten(1)
    torch.testing.assert_close(model(images), flat @ weights)
    assert model.size == (None if shape[1] is None else (8, 8))


@pytest.mark.parametrize(
    ("kind", "scale", "close"),
    [("FLOAT16", 1, 1e-2), ("DOUBLE", 1, 1e-5), ("UINT8", 255, 1e-2), ("FLOAT", 1, 1e-5)],
)
def test_every_kind_of_number_is_given_as_the_graph_wants_it(
    tmp_path: Path, images: Tensor, kind: str, scale: int, close: float
) -> None:
    weights = write(tmp_path / "m.onnx", kind=getattr(onnx.TensorProto, kind))
    scores = load_model(f"file:{tmp_path / 'm.onnx'}")(images)
    assert scores.dtype == torch.float32
    wanted = (images * scale).flatten(1) @ weights
    torch.testing.assert_close(scores, wanted, rtol=0, atol=close * scale)


def test_the_scores_are_found_among_several_outputs(tmp_path: Path, images: Tensor) -> None:
    weights = write(tmp_path / "m.onnx", outputs=("class", "scores"))
    model = load_model(f"file:{tmp_path / 'm.onnx'}")
    torch.testing.assert_close(model(images), images.flatten(1) @ weights)


def test_a_card_adds_mean_std_and_names(tmp_path: Path, images: Tensor) -> None:
    weights = write(tmp_path / "m.onnx")
    card = {"net": "onnx", "classes": list("abcd"), "size": [8, 8], "mean": [0.5] * 3}
    (tmp_path / "card.json").write_text(json.dumps(card))
    model = load_model(f"file:{tmp_path}")
    assert model.classes == tuple("abcd")
    assert model.access == "scores"
    torch.testing.assert_close(model(images), (images - 0.5).flatten(1) @ weights)


@pytest.mark.parametrize(
    ("entries", "kind", "message"),
    [
        ({"classes": 3}, "FLOAT", "gives 4 scores, but its card has 3 classes"),
        ({"size": [4, 4]}, "FLOAT", r"says size \(4, 4\), but the graph takes \(8, 8\)"),
        ({"channels": 1}, "FLOAT", "says channels 1, but the graph takes 3"),
        ({"mean": [0.5] * 3}, "UINT8", "takes 8-bit pixels, so its card can have no mean and std"),
    ],
)
def test_a_card_that_does_not_fit_the_graph_is_refused(
    tmp_path: Path, entries: dict[str, Any], kind: str, message: str
) -> None:
    write(tmp_path / "m.onnx", kind=getattr(onnx.TensorProto, kind))
    card = {"net": "onnx", "classes": list("abcd"), "size": [8, 8], **entries}
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(BadInput, match=message):
        load_model(f"file:{tmp_path}")


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        (("batch", 3, "high", "wide"), [4096, 4096], "does not take images of 3 x 4096 x 4096, as"),
        (("batch", 3, "high", "wide"), [10**6, 10**6], "at most 4096, got"),
        (("batch", 3, "high", "wide"), [9, 9], "does not take images of 3 x 9 x 9, as its card"),
        ((10**6, 3, "high", "wide"), [8, 8], "asks for batches of more than 134217728 elements"),
        ((10**6, 3, 8, 8), [8, 8], r"takes batches of \[1000000, 3, 8, 8\], which is more than"),
    ],
)
def test_a_size_that_the_graph_cannot_take_is_refused_at_once(
    tmp_path: Path, shape: tuple[Axis, ...], size: list[int], message: str
) -> None:
    write(tmp_path / "m.onnx", shape)
    card = {"net": "onnx", "classes": list("abcd"), "size": size}
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(BadInput, match=message) as error:
        load_model(f"file:{tmp_path / 'm.onnx'}")
    assert "\n" not in str(error.value)


def test_attacks_that_need_gradients_refuse_it(tmp_path: Path, images: Tensor) -> None:
    write(tmp_path / "m.onnx")
    model = load_model(f"file:{tmp_path / 'm.onnx'}")
    with pytest.raises(BadInput, match=r"pgd needs gradients, but file:\S+ gives scores alone; "):
        run_attack(PGD(), model, images, model(images).argmax(dim=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": ("batch", 192)}, r"must take one batch of images.*images \['batch', 192\]"),
        ({"kind": "INT32"}, r"takes tensor\(int32\); tensor\(float\), "),
        ({"outputs": ("class",)}, r"must give scores.*class tensor\(int64\)"),
    ],
)
def test_a_graph_of_another_kind_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    if "kind" in options:
        options = {"kind": getattr(onnx.TensorProto, options["kind"])}
    write(tmp_path / "m.onnx", **options)
    with pytest.raises(BadInput, match=message):
        load_model(f"file:{tmp_path / 'm.onnx'}")


def test_images_of_another_size_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "m.onnx")
    with pytest.raises(BadInput, match=r"3 channels and size \(8, 8\), got \(1, 8, 8\)"):
        load_model(f"file:{tmp_path / 'm.onnx'}")(torch.zeros(1, 1, 8, 8))


def test_a_damaged_file_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "m.onnx")
    whole = (tmp_path / "m.onnx").read_bytes()
    for content in (b"", b"not a graph", whole[:200]):
        (tmp_path / "m.onnx").write_bytes(content)
        with pytest.raises(BadInput, match="damaged or no model that onnxruntime runs"):
            load_model(f"file:{tmp_path / 'm.onnx'}")
    assert capfd.readouterr().err == ""


def test_weights_outside_the_folder_are_not_read(tmp_path: Path) -> None:
    """The format may keep weights in a file beside; a graph could name any file instead."""
    folder = tmp_path / "model"
    folder.mkdir()
    write(folder / "m.onnx")
    model = onnx.load(folder / "m.onnx")
    content = model.graph.initializer[0].raw_data
    (tmp_path / "secret").write_bytes(content)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../secret"
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="damaged or no model"):
        load_model(f"file:{folder}")


def test_without_onnxruntime_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"onnxruntime; .* pip install 'pinprick\[onnx\]'"):
        load_model(f"file:{tmp_path / 'm.onnx'}")
