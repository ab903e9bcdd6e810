"""robustbench itself, as PyPI has it: run where it is installed (``pip install robustbench``).

It is not among what the tests install, since it pins timm and brings pandas. No checkpoint is
fetched: files in its layout are put where it keeps them.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from pinprick import BadInput
from pinprick.zoo import load_model
from pinprick.zoo.robustbench import all_names

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("robustbench") is None, reason="robustbench is not installed"),
    pytest.mark.filterwarnings("default"),  # those of its dependencies are not ours
]

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 410, 3), dtype=np.uint8))


def build(dataset: str, name: str) -> nn.Module:
    """The network with weights of its own, as the package builds it."""
    all_names()
    from robustbench.model_zoo import model_dicts
    from robustbench.model_zoo.enums import BenchmarkDataset, ThreatModel

    net: nn.Module = model_dicts[BenchmarkDataset(dataset)][ThreatModel.Linf][name]["model"]()
    return net.eval()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "robustbench"


def keep(state: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path)


def test_its_models_are_listed() -> None:
    names = all_names()
    assert len(names) > 200
    assert "cifar10/Linf/Wong2020Fast" in names
    assert "imagenet/Linf/Wong2020Fast" in names


def test_a_model_for_cifar_is_loaded(cache: Path) -> None:
    """Its published file lacks mean and std, which the package fixes in its code."""
    net = build("cifar10", "Wong2020Fast")
    state = {name: one for name, one in net.state_dict().items() if name not in ("mu", "sigma")}
    assert len(state) == len(net.state_dict()) - 2
    path = cache / "cifar10" / "Linf" / "Wong2020Fast.pt"
    keep(state, path)
    model = load_model("robustbench:Wong2020Fast")
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(model(images), net(images))
    assert (model.size, model.class_name(9)) == ((32, 32), "truck")


def test_a_file_that_the_package_takes_in_part_is_refused(cache: Path) -> None:
    """It asks for no name at all of some models, once a name that it knows of is too much."""
    state = build("cifar10", "Wong2020Fast").state_dict()
    del state["conv1.weight"]
    state["model_preact_hl1.1.weight"] = torch.zeros(1)
    keep(state, cache / "cifar10" / "Linf" / "Wong2020Fast.pt")
    with pytest.raises(BadInput, match=r"do not fit the network: the file lacks conv1\.weight"):
        load_model("robustbench:Wong2020Fast")


def test_a_model_for_imagenet_has_the_transform_of_the_package(cache: Path) -> None:
    name = "Salman2020Do_R18"
    net = build("imagenet", name)
    inner = {
        key.removeprefix("model."): one
        for key, one in net.state_dict().items()
        if key.startswith("model.")
    }
    keep(inner, cache / "imagenet" / "Linf" / f"{name}.pt")
    model = load_model(f"robustbench:imagenet/{name}")
    from robustbench.data import PREPROCESSINGS

    prepared = model.prepare(PICTURE)
    assert torch.equal(prepared, PREPROCESSINGS["Res256Crop224"](PICTURE))
    with torch.no_grad():
        assert torch.equal(model(prepared[None]), net(prepared[None]))
    assert (model.size, model.class_name(282)) == ((224, 224), "tiger cat")
