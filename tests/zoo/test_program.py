"""TorchScript and torch.export files are programs: they load when they are trusted, not before."""

import shutil
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, run_attack
from pinprick.attacks import PGD
from pinprick.zoo import load_model
from zoo.conftest import CARD

FILES = ("script.ts", "script.torchscript", "script.pt", "fixed.pt2", "fixed.pt", "free.pt2")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small network in every form."""
    folder = tmp_path_factory.mktemp("programs")
    net = make()
    example = torch.rand(2, 3, 6, 5)
    with warnings.catch_warnings(action="ignore"):
        script = torch.jit.script(net)
    for name in ("script.ts", "script.torchscript", "script.pt"):
        script.save(str(folder / name))
    torch.export.save(torch.export.export(net, (example,)), folder / "fixed.pt2")
    shutil.copy(folder / "fixed.pt2", folder / "fixed.pt")
    free = torch.export.export(net, (example,), dynamic_shapes=({0: torch.export.Dim("n")},))
    torch.export.save(free, folder / "free.pt2")
    return folder


def make() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 3)).eval()


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_program_is_refused_until_it_is_trusted(programs: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"is a program .*can run code.*trust=True.*--trust"):
        load_model(f"file:{programs / name}")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_trusted_program_gives_logits_and_gradients(
    programs: Path, name: str, images: Tensor
) -> None:
    images = images[:5].float()  # not a multiple of the two images that it was exported with
    model = load_model(f"file:{programs / name}", trust=True)
    net = make()
    with torch.no_grad():
        torch.testing.assert_close(model(images), net(images))
    labels = net(images).argmax(dim=1)
    mine, theirs = (run_attack(PGD(steps=2), m, images, labels) for m in (model, net))
    torch.testing.assert_close(mine.adversarial, theirs.adversarial)
    assert (mine.adversarial != images).any()
    assert model.access == "gradients"


@pytest.mark.slow
def test_a_program_takes_its_preprocessing_from_a_card(net: nn.Module, tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        torch.jit.script(net).save(str(tmp_path / "digits.ts"))
    (tmp_path / "card.json").write_text(CARD.as_json())
    model = load_model(f"file:{tmp_path}", trust=True)
    assert (model.mean, model.size, model.classes) == (CARD.mean, CARD.size, CARD.classes)
    digits = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(model(digits), net((digits - 0.1) / 0.3))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("left", [0, 0.5])
def test_a_program_cut_short_is_said(
    programs: Path, tmp_path: Path, name: str, left: float
) -> None:
    whole = (programs / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(left * len(whole))])
    with pytest.raises(BadInput, match=f"{name} is damaged"):
        load_model(f"file:{tmp_path / name}", trust=True)


@pytest.mark.slow
def test_an_archive_of_another_kind_is_said(programs: Path, tmp_path: Path) -> None:
    shutil.copy(programs / "script.ts", tmp_path / "wrong.pt2")
    torch.save({"weight": torch.zeros(1)}, tmp_path / "wrong.ts")
    for name in ("wrong.pt2", "wrong.ts"):
        with pytest.raises(BadInput, match=f"{name} is damaged or no"):
            load_model(f"file:{tmp_path / name}", trust=True)


@pytest.mark.slow
def test_a_program_of_something_else_is_refused(tmp_path: Path) -> None:
    other = torch.export.export(nn.Linear(3, 2), (torch.zeros(1, 3),))
    torch.export.save(other, tmp_path / "other.pt2")
    with pytest.raises(BadInput, match="must take one batch of images"):
        load_model(f"file:{tmp_path / 'other.pt2'}", trust=True)
