"""``pinprick train-generator``: what it prints, what it leaves behind, and what it refuses."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cli.conftest import Run
from pinprick import load_model

QUICK = (
    "--option", "base=2", "--option", "residual_blocks=0", "--option", "dense_epochs=1",
    "--option", "sparse_epochs=1", "--option", "batch_size=20", "--option", "watch_images=10",
    "--device", "cpu",
)  # fmt: skip


@pytest.fixture
def predicted(tmp_path: Path) -> Path:
    """Blotches, labelled as the shipped MNIST model classifies them."""
    model = load_model("pinprick:mnist_cnn")
    rng = torch.Generator().manual_seed(0)
    coarse = torch.rand(60, 1, 7, 7, generator=rng).round() * 255
    images = coarse.to(torch.uint8).repeat_interleave(4, dim=2).repeat_interleave(4, dim=3)
    with torch.no_grad():
        labels = model(images.float() / 255).argmax(dim=1)
    tensors = {
        "train_images": images[:40].contiguous(),
        "train_labels": labels[:40].contiguous(),
        "test_images": images[40:].contiguous(),
        "test_labels": labels[40:].contiguous(),
    }
    path = tmp_path / "blotches.safetensors"
    save_file(tensors, path, {"name": "blotches", "classes": json.dumps(model.classes)})
    return path


def test_trains_tells_and_leaves_a_generator_that_the_attack_takes(
    run: Run, predicted: Path, tmp_path: Path
) -> None:
    command = ("train-generator", "--model", "pinprick:mnist_cnn", "--data", predicted, *QUICK)
    shell = run(*command, "--out", "made")
    assert shell.status == 0
    lines = shell.err.splitlines()
    assert lines[0] == "egs_tssa against pinprick:mnist_cnn on blotches"
    assert lines[1].startswith("epoch 1, stage 1: loss ")
    assert lines[2].startswith("epoch 2, stage 2: loss ")
    assert "use them with --attack egs_tssa --option weights=made" in lines[-1]
    assert "one pass, at most 78 pixels" in shell.out
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "card.json",
        "generator.safetensors",
    ]

    again = run(*command, "--out", "made", "--json")
    assert again.err.startswith("this training has finished already; its generator is in made")
    facts = json.loads((tmp_path / "made" / "card.json").read_text())["facts"]
    del facts["history"]
    assert json.loads(again.out) == facts
    other = run(*command, "--option", "eps=0.5", "--out", "made")
    assert other.status == 2
    assert "made holds a generator of another training (eps 1.0 there, 0.5 here)" in other.err


def test_an_unknown_class_and_an_attack_without_a_generator_are_refused(
    run: Run, predicted: Path
) -> None:
    command = ("train-generator", "--data", predicted, *QUICK)
    shell = run(*command, "--model", "pinprick:mnist_cnn", "--target", "eleven")
    assert shell.status == 2
    assert "eleven" in shell.err
    shell = run(*command, "--model", "pinprick:mnist_cnn", "--attack", "pgd")
    assert shell.status == 2
    assert "no attack with a generator is called 'pgd'" in shell.err
