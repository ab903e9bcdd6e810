"""A model can come from any function that Python can import, also from the current folder."""

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from PIL import Image

from pinprick import BadInput, UnknownName
from pinprick.zoo import load_model

CODE = """
import pinprick
from torch import nn

number = 3
ready = nn.Identity()

def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 2))

def classifier():
    return pinprick.Classifier(network(), classes=("left", "right"), name="mine")

def nothing():
    return None

def late():
    from zoo_test_helper import network
    return network()

def lazy():
    def net(images):
        from zoo_test_lazy import scores
        return scores(images)
    return net

def tidy():
    import os, sys
    sys.path.remove(os.getcwd())
    return network()
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("models", "helper", "lazy", "broken"):
        monkeypatch.delitem(sys.modules, f"zoo_test_{name}", raising=False)
    (tmp_path / "zoo_test_lazy.py").write_text("def scores(images): return images.mean(dim=(2, 3))")
    (tmp_path / "json.py").write_text("raise RuntimeError('not the module of the library')")
    (tmp_path / "zoo_test_models.py").write_text(CODE)
    (tmp_path / "zoo_test_helper.py").write_text(CODE)
    (tmp_path / "zoo_test_broken.py").write_text("import a_module_that_is_not_there")
    monkeypatch.chdir(tmp_path)


def test_a_model_can_come_from_a_file_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.py").write_text(CODE)
    assert load_model("deep/mine.py:classifier").name == "mine"
    with pytest.raises(BadInput, match=r"there is no file deep/other\.py to take a model"):
        load_model("deep/other.py:classifier")


def test_a_network_takes_pictures_at_their_own_size() -> None:
    model = load_model("zoo_test_models:network")
    picture = model.prepare(Image.new("RGB", (2, 2), "white"))
    assert picture.shape == (3, 2, 2)
    assert model(picture[None]).shape == (1, 2)
    assert model.name == "zoo_test_models:network"


def test_a_network_is_handed_on_as_it_came() -> None:
    net = load_model("zoo_test_models:network").net
    assert isinstance(net, torch.nn.Module)
    assert net.training


def test_a_classifier_is_taken_as_it_is() -> None:
    model = load_model("zoo_test_models:classifier")
    assert model.name == "mine"
    assert model.classes == ("left", "right")


def test_the_function_may_import_from_the_folder_too() -> None:
    assert load_model("zoo_test_models:late")(torch.zeros(1, 3, 2, 2)).shape == (1, 2)


def test_a_model_may_import_from_the_folder_when_it_is_called() -> None:
    model = load_model("zoo_test_models:lazy")
    assert model(torch.ones(1, 3, 2, 2)).tolist() == [[1.0, 1.0, 1.0]]


def test_a_model_may_import_from_the_folder_after_the_folder_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model("zoo_test_models:lazy")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert model(torch.ones(1, 3, 2, 2)).shape == (1, 3)


@pytest.mark.parametrize("function", ["network", "tidy"])
def test_the_folder_stays_at_the_end_where_it_hides_no_other_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    before = sys.path.copy()
    for _ in range(2):
        load_model(f"zoo_test_models:{function}")
    assert sys.path == [*before, str(tmp_path)]
    monkeypatch.delitem(sys.modules, "json")
    assert hasattr(import_module("json"), "loads")


def test_the_place_of_a_folder_that_was_there_already_is_left_alone(tmp_path: Path) -> None:
    sys.path.insert(0, str(tmp_path))
    before = sys.path.copy()
    load_model("zoo_test_models:network")
    assert sys.path == before


@pytest.mark.parametrize("name", ["zoo_test_models:nothing", "zoo_test_broken:load"])
def test_where_there_is_no_model_nothing_stays(name: str) -> None:
    before = sys.path.copy()
    with pytest.raises((BadInput, ModuleNotFoundError)):
        load_model(name)
    assert sys.path == before


def test_a_folder_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(BadInput, match="no module 'zoo_test_models'"):
        load_model("zoo_test_models:network")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("zoo_test_models:netwrk", UnknownName, "did you mean network"),
        ("zoo_test_models:number", BadInput, "is a int; it must be a function"),
        ("zoo_test_models:ready", BadInput, "is a Identity; it must be a function"),
        ("zoo_test_models:nothing", BadInput, "gave a NoneType; it must give a Classifier"),
        ("no_such_package.models:load", BadInput, "no module 'no_such_package'"),
        ("torchvison:resnet18", BadInput, "did you mean torchvision"),
        (":load", BadInput, "not the name of a module"),
    ],
)
def test_what_cannot_be_a_model_is_said(name: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        load_model(name)


def test_an_error_in_the_users_code_stays_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        load_model("zoo_test_broken:load")
