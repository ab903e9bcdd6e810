"""``pinprick train``: what it prints, what it leaves behind, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import pinprick
from cli.conftest import Run
from pinprick.train import RECIPES

QUICK = (
    "--epochs", "2", "--option", "batch_size=20", "--option", "l0_images=4",
    "--option", "exam_images=10", "--option", "exam_steps=2", "--option", "strong_steps=2",
    "--option", "l0_queries=20", "--device", "cpu",
)  # fmt: skip


@pytest.fixture
def stripes(tmp_path: Path) -> Path:
    """Pictures in grey, striped across or down."""
    lines = (torch.arange(28) % 4 < 2).to(torch.uint8) * 200
    across = lines.view(28, 1).expand(28, 28)
    both = torch.stack([across, across.T]).unsqueeze(1)
    tensors = {}
    for split, count in (("train", 80), ("test", 20)):
        labels = torch.arange(count) % 2
        noise = torch.arange(count * 784).view(count, 1, 28, 28) * 2654435761 % 50
        tensors[f"{split}_images"] = both[labels] + noise.to(torch.uint8)
        tensors[f"{split}_labels"] = labels
    path = tmp_path / "stripes.safetensors"
    save_file(tensors, path, {"name": "stripes", "classes": json.dumps(["across", "down"])})
    return path


@pytest.mark.slow
def test_trains_tells_and_leaves_a_model(run: Run, stripes: Path, tmp_path: Path) -> None:
    command = ("train", "--data", stripes, "--net", "mnist_cnn", "--recipe", "fast_at", *QUICK)
    shell = run(*command, "--option", "eps=4/255", "--out", "made")
    assert shell.status == 0
    lines = shell.err.splitlines()
    assert lines[0] == "Fast-AT of mnist_cnn on stripes"
    assert lines[1].startswith("epoch 1: loss ")
    assert "accuracy" in lines[2]
    assert "robust accuracy" in lines[2]
    assert "accuracy under PGD-2, eps 4/255" in shell.out
    assert "worst case with PGD-2 x 5, margin, eps 4/255" in shell.out
    assert "accuracy with 24 elements changed" in shell.out
    budgets = "worst of Pinprick, effort fast; Sparse-RS, 20 queries per k"
    assert f"elements changed: {budgets}" in shell.out
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "card.json",
        "model.safetensors",
    ]
    card = json.loads((tmp_path / "made" / "card.json").read_text())
    assert card["net"] == "mnist_cnn"
    assert card["classes"] == ["across", "down"]
    assert card["facts"]["epochs"] == 2

    again = run(*command, "--option", "eps=4/255", "--out", "made", "--json")
    assert again.err.startswith("this training has finished already; its model is in made")
    assert json.loads(again.out) == card["facts"]
    other = run(*command, "--out", "made")
    assert other.status == 2
    assert "made holds a model of another training (eps 0.01568" in other.err


def test_the_command_line_is_a_module_too() -> None:
    source = Path(pinprick.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "pinprick", "--version"],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"pinprick {pinprick.__version__}\n"


def test_half_the_size_is_a_switch(run: Run, stripes: Path, tmp_path: Path) -> None:
    command = ("train", "--data", stripes, "--net", "mnist_cnn", *QUICK, "--epochs", "1")
    assert run(*command, "--half", "--out", "made").status == 0
    weights = load_file(tmp_path / "made" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}


def test_some_of_a_set_is_trained_on_and_the_rest_is_said(run: Run, tmp_path: Path) -> None:
    command = ("train", "--data", "fashion_sample[:20]", "--net", "mnist_cnn", *QUICK)
    shell = run(*command, "--epochs", "1", "--out", "made")
    assert shell.status == 0
    held = "fashion_sample/test[0:20][random=4,seed=0]"
    assert shell.err.startswith(f"4 of 20 images are held out as test images: {held}\n")
    facts = json.loads((tmp_path / "made" / "card.json").read_text())["facts"]
    assert facts["test_data"] == held
    assert facts["train_data"] == f"fashion_sample/test[0:20] without {held}"
    assert facts["test_images"] == 4
    again = run("attack", "--data", held, "--model", "file:made", "--attack", "fgsm")
    assert again.status == 0


def test_a_list_is_trained_on_and_tested_on_another(run: Run, tmp_path: Path) -> None:
    lines = ["file,label"]
    for number in range(8):
        Image.new("RGB", (32, 32), (30 * number, 0, 0)).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png,{'red' if number > 3 else 'dark'}")
    (tmp_path / "all.csv").write_text("\n".join(lines))
    (tmp_path / "test.csv").write_text("\n".join(["file,label", *lines[-2:]]))
    command = ("train", "--data", "csv:all.csv", "--net", "resnet20", *QUICK, "--epochs", "1")
    shell = run(*command, "--test", "csv:test.csv", "--out", "made")
    assert shell.status == 0
    said = "2 of 8 images are test images, and are not trained on: csv:test.csv"
    assert shell.err.splitlines()[0] == said
    facts = json.loads((tmp_path / "made" / "card.json").read_text())["facts"]
    assert facts["test_data"] == "csv:test.csv[split=test]"
    other = run(*command, "--out", "made")
    assert other.status == 2
    assert "made holds a model of another training (data 6 images" in other.err


def test_a_folder_of_other_weights_is_refused_and_left_as_it_was(
    run: Run, stripes: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "others"
    folder.mkdir()
    for number in (1, 2):
        shard = folder / f"model-0000{number}-of-00002.safetensors"
        save_file({"weight": torch.zeros(2)}, shard, {"format": "pt"})
    shell = run("train", "--data", stripes, "--net", "mnist_cnn", *QUICK, "--out", "others")
    assert (shell.status, shell.out) == (2, "")
    assert shell.err.startswith("pinprick: others holds files of another model (model-00001-of-")
    assert len(shell.err.splitlines()) == 1
    assert [path.stat().st_size > 0 for path in folder.iterdir()] == [True, True]


def test_a_training_whose_weights_are_gone_is_done_again(
    run: Run, stripes: Path, tmp_path: Path
) -> None:
    command = ("train", "--data", stripes, "--net", "mnist_cnn", *QUICK, "--epochs", "1")
    assert run(*command, "--out", "made").status == 0
    (tmp_path / "made" / "model.safetensors").unlink()
    shell = run(*command, "--out", "made")
    assert shell.err.startswith("made holds a card without its weights; training again")
    assert (tmp_path / "made" / "model.safetensors").exists()


def test_the_kind_of_number_that_weights_are_stored_as_is_an_option(
    run: Run, stripes: Path, tmp_path: Path
) -> None:
    command = ("train", "--data", stripes, "--net", "mnist_cnn", *QUICK, "--epochs", "1")
    shell = run(*command, "--store", "int8", "--out", "made", "--json")
    assert json.loads(shell.out)["weights"] == "int8"
    weights = load_file(tmp_path / "made" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.int8, torch.float32}
    refused = run(*command, "--store", "int4", "--out", "other")
    assert refused.status == 2
    assert "no way to store weights is called 'int4'; did you mean int8" in refused.err


@pytest.mark.parametrize("net", ["resnet19", "torchvision:resnet19", "onnx:resnet18"])
def test_the_name_of_the_network_is_looked_at_before_the_data(run: Run, net: str) -> None:
    shell = run("train", "--data", "gone.safetensors", "--net", net)
    assert shell.status == 2
    assert "gone" not in shell.err
    assert net.rpartition(":")[2] in shell.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--recipe", "pgd"), "no recipe is called 'pgd'; did you mean pgd_at?"),
        (("--net", "resnet19"), "no network is called 'resnet19'; did you mean resnet18"),
        (("--net", "resnet18"), "resnet18 takes pictures with 3 channels; stripes has 1 x 28 x 28"),
        (("--option", "lr=0"), "training needs lr above 0 and at most 100, got 0"),
        (("--option", "rate=1"), "no option of training with standard is called 'rate'"),
        (("--epochs", "0"), "training needs epochs >= 1, got 0"),
        (("--data", "gone.safetensors"), "there is no file gone.safetensors to train on"),
        (("--data", "cifar11"), "did you mean cifar10"),
        (("--preset", "cifar"), "no preset is called 'cifar'; did you mean cifar10"),
        (("--device", "gpu"), "the device 'gpu' cannot be used"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_line(
    run: Run, stripes: Path, arguments: tuple[str, ...], message: str
) -> None:
    shell = run("train", "--data", stripes, "--net", "mnist_cnn", *arguments)
    assert (shell.status, shell.out) == (2, "")
    assert shell.err.startswith("pinprick: ")
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1


def test_the_help_names_every_recipe(run: Run) -> None:
    words = " ".join(run("train", "--help").out.split())
    assert f"{', '.join([*RECIPES][:-1])}, or {[*RECIPES][-1]}." in words
