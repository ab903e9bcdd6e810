"""Models of robustbench, with a stand-in for the package that has the same names and habits.

``test_real_robustbench.py`` tries the package itself where it is installed.
"""

import importlib
import sys
from collections.abc import Callable
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import transforms

from pinprick import BadInput, MissingExtra, UnknownName
from pinprick.zoo import load_model
from pinprick.zoo.registry import SOURCES
from pinprick.zoo.robustbench import all_names

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 410, 3), dtype=np.uint8))
STEPS = transforms.Compose(
    [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
)


class Data(Enum):
    cifar_10 = "cifar10"
    imagenet = "imagenet"


class Threat(Enum):
    Linf = "Linf"
    L2 = "L2"


def make() -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 10))


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package itself is installed, another test may have imported it."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("robustbench", "pyautoattack", "autoattack"):
            monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the stand-in; gives the folder where its checkpoints are kept."""
    tables: dict[Data, dict[Threat, dict[str, Any]]] = {
        Data.cifar_10: {Threat.Linf: {"Some2020Net": {}}, Threat.L2: {"Other2021Net": {}}},
        Data.imagenet: {Threat.Linf: {"Some2020Net": {}}},
    }

    def load(name: str, model_dir: Path, dataset: str, threat_model: str) -> nn.Module:
        print("Download started")
        net = make()
        path = model_dir / dataset / threat_model / f"{name}.pt"
        net.load_state_dict(torch.load(path, map_location="cpu", weights_only=False))
        return net

    def get_preprocessing(dataset: Data, threat: Threat, name: str, given: None) -> Any:
        assert (dataset, threat, name) == (Data.imagenet, Threat.Linf, "Some2020Net")
        return STEPS

    modules: dict[str, dict[str, Any]] = {
        "robustbench": {},
        "robustbench.model_zoo": {"model_dicts": tables},
        "robustbench.model_zoo.enums": {"BenchmarkDataset": Data, "ThreatModel": Threat},
        "robustbench.utils": {"load_model": load},
        "robustbench.data": {"get_preprocessing": get_preprocessing},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "robustbench"


def keep(path: Path) -> nn.Module:
    net = make()
    path.parent.mkdir(parents=True)
    torch.save(net.state_dict(), path)
    return net


def test_a_model_for_cifar_takes_small_pictures_as_they_are(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = keep(cache / "cifar10" / "Linf" / "Some2020Net.pt")
    model = load_model("robustbench:Some2020Net")
    assert model.name == "robustbench:Some2020Net"
    assert model.class_name(9) == "truck"
    assert model.size == (32, 32)
    small = PICTURE.resize((32, 32))
    assert torch.equal(model.prepare(small), transforms.ToTensor()(small))
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(model(images), net(images))
    assert capsys.readouterr().out == ""  # stdout is for results


def test_a_model_for_imagenet_has_the_transform_of_the_package(cache: Path) -> None:
    keep(cache / "imagenet" / "Linf" / "Some2020Net.pt")
    for name in ("imagenet/Some2020Net", "imagenet/Linf/Some2020Net"):
        model = load_model(f"robustbench:{name}")
        assert model.size == (224, 224)
        assert model.class_name(282) == "tiger cat"
        assert torch.equal(model.prepare(PICTURE), STEPS(PICTURE))


def test_the_threat_model_can_be_named(cache: Path) -> None:
    keep(cache / "cifar10" / "L2" / "Other2021Net.pt")
    assert load_model("robustbench:cifar10/L2/Other2021Net").size == (32, 32)


def test_a_pickle_in_its_cache_is_not_run(
    cache: Path, lay_trap: Callable[[Path], Path], trace: Path
) -> None:
    """The package itself asks for the unsafe form, or leaves it to the version of torch."""
    lay_trap(cache / "cifar10" / "Linf" / "Some2020Net.pt")
    with pytest.raises(BadInput, match="checkpoint of robustbench:Some2020Net is a pickle that"):
        load_model("robustbench:Some2020Net")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("Some2020Nets", UnknownName, "did you mean Some2020Net"),
        ("mnist/Some2020Net", UnknownName, "no dataset of robustbench is called 'mnist'"),
        ("cifar10/L1/Some2020Net", UnknownName, "no threat model of robustbench is called 'L1'"),
        ("a/b/c/d", BadInput, "written NAME, DATASET/NAME or DATASET/THREAT/NAME"),
        ("", BadInput, "written NAME, DATASET/NAME or DATASET/THREAT/NAME"),
    ],
)
def test_what_it_does_not_list_is_said(
    cache: Path, name: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        load_model(f"robustbench:{name}")


def test_without_the_package_the_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "robustbench", None)
    with pytest.raises(MissingExtra, match=r"robustbench; install it with: pip install robustben"):
        load_model("robustbench:Some2020Net")


def test_a_package_that_lacks_another_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "robustbench").mkdir()
    (tmp_path / "robustbench" / "__init__.py").write_text("import a_module_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match="cannot be imported: No module named 'a_module_that_is_not"):
        load_model("robustbench:Some2020Net")


AS_ON_PYPI = {  # what version 1.1.1 imports, and what its dependency brings
    "robustbench/__init__.py": "from .loaders import where\nfrom .eval import attack",
    "robustbench/loaders.py": "import pkg_resources\n"
    "def where(): return pkg_resources.resource_filename(__name__, 'helper_files/list.txt')",
    "robustbench/eval.py": "from autoattack import AutoAttack as attack\n"
    "from autoattack.state import EvaluationState",
    "robustbench/model_zoo/__init__.py": "from .enums import *\n"
    "model_dicts = {Data.cifar10: {Threat.Linf: {'Some2020Net': {}}}}",
    "robustbench/model_zoo/enums.py": "from enum import Enum\n"
    "Data = Enum('Data', {'cifar10': 'cifar10'})\nThreat = Enum('Threat', {'Linf': 'Linf'})",
    "pyautoattack/__init__.py": "AutoAttack = 'the attack'",
    "pyautoattack/state.py": "EvaluationState = 'its state'",
}


@pytest.fixture
def as_on_pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, code in AS_ON_PYPI.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "pkg_resources", None)  # as without an old setuptools
    return tmp_path


def test_modules_that_the_package_does_not_bring_are_lent_to_it(as_on_pypi: Path) -> None:
    if find_spec("autoattack") is not None:
        pytest.skip("autoattack is installed, so there is nothing to lend")
    assert all_names() == ["cifar10/Linf/Some2020Net"]
    assert "autoattack" not in sys.modules  # the caller's own imports are as before
    assert sys.modules.get("pkg_resources") is None
    package = sys.modules["robustbench"]
    assert package.attack == "the attack"
    assert package.where() == str(as_on_pypi / "robustbench" / "helper_files" / "list.txt")


def test_a_package_without_its_dependency_is_said(as_on_pypi: Path) -> None:
    for file in (as_on_pypi / "pyautoattack").iterdir():
        file.unlink()
    (as_on_pypi / "pyautoattack").rmdir()
    if find_spec("autoattack") or find_spec("pyautoattack"):
        pytest.skip("it is installed elsewhere")
    with pytest.raises(BadInput, match="'autoattack'; install what it lacks with: pip install"):
        load_model("robustbench:Some2020Net")


def test_a_network_that_cannot_be_built_here_is_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str, **_: Any) -> nn.Module:
        raise RuntimeError("Found no NVIDIA driver on your system.\nPlease check")

    monkeypatch.setattr(sys.modules["robustbench.utils"], "load_model", load)
    with pytest.raises(BadInput, match=r"Some2020Net cannot be built here \(Found no NVIDIA dri"):
        load_model("robustbench:Some2020Net")


def test_a_file_that_lacks_weights_is_refused(cache: Path) -> None:
    path = cache / "cifar10" / "Linf" / "Some2020Net.pt"
    state = keep(path).state_dict()
    del state["2.weight"]
    torch.save(state, path)
    with pytest.raises(BadInput, match=r"weights of robustbench:Some2020Net do not fit .*2\.weig"):
        load_model("robustbench:Some2020Net")


def test_it_is_ready_once_all_that_comes_with_it_is_there(as_on_pypi: Path) -> None:
    (source,) = (one for one in SOURCES if one.name == "robustbench")
    others = [names for names in source.parts if not any(map(find_spec, names.split()))]
    assert source.ready == (not others)
    for name in others:
        (as_on_pypi / f"{name}.py").touch()
    importlib.invalidate_caches()
    assert source.ready
