"""Training on picture files: the preset for ImageNet, on a small folder and with a small net."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from pinprick import load_model
from pinprick.train.job import train_epochs, train_model
from pinprick.train.loop import Trainer
from pinprick.train.material import Material, read_material
from pinprick.train.plan import Plan, build_plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures that are brighter at the left or at the top, of several sizes."""
    for split, count in (("train", 8), ("val", 4)):
        for name, turn in (("left", 90), ("top", 180)):
            home = tmp_path / "pictures" / split / name
            home.mkdir(parents=True)
            for number in range(count):
                shade = Image.linear_gradient("L").rotate(turn).resize((50 + number, 40))
                shade.convert("RGB").save(home / f"{number}.png")
    return tmp_path / "pictures"


def small_plan() -> Plan:
    options = {
        "epochs": 5,
        "phases": "[[0, 16, 8], [0.4, 24, 8], [0.8, 28, 4]]",
        "watch_images": 4,
        "exam_images": 6,
        "exam_steps": 3,
        "strong_steps": 3,
        "strong_restarts": 1,
        "l0_images": 2,
        "l0_queries": 20,
    }
    return build_plan(data="imagenet", net="resnet20", recipe="fast_at", options=options)


@pytest.mark.slow
def test_the_preset_for_imagenet_goes_through_its_phases(folder: Path, tmp_path: Path) -> None:
    material = read_material(f"folder:{folder}")
    trainer = Trainer(small_plan(), material, "cpu")
    sizes: list[tuple[int, ...]] = []
    trainer.net.register_forward_pre_hook(
        lambda net, given: sizes.append(tuple(given[0].shape[2:])) if net.training else None
    )
    for epoch in trainer.epochs():
        assert epoch.accuracy <= 1
    assert list(dict.fromkeys(sizes)) == [(16, 16), (24, 24), (28, 28)]
    card = train_model(small_plan(), material, tmp_path / "out")
    assert (card.size, card.resize, card.classes) == ((28, 28), 32, ("left", "top"))
    assert card.facts["test_images"] == 6
    model = load_model(f"file:{tmp_path / 'out'}")
    assert material.test.images(model).shape == (8, 3, 28, 28)


@pytest.mark.slow
def test_a_training_on_pictures_goes_on_as_before(folder: Path, tmp_path: Path) -> None:
    material = read_material(f"folder:{folder}")
    whole = Trainer(small_plan(), material, "cpu")
    list(whole.epochs())
    for _ in train_epochs(Trainer(small_plan(), material, "cpu"), material, tmp_path / "out"):
        break
    again = Trainer(small_plan(), material, "cpu")
    list(train_epochs(again, material, tmp_path / "out"))
    first, second = whole.tensors(), again.tensors()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_without_phases_pictures_have_the_size_of_the_network(folder: Path) -> None:
    material: Material = read_material(f"folder:{folder}")
    assert material.card("resnet20").size == (32, 32)
    card = material.card("torchvision:resnet50")
    assert (card.size, card.resize) == ((224, 224), 256)
    assert card.mean == (0.485, 0.456, 0.406)
