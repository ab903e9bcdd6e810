"""``--data`` gives a command images of a dataset, with their labels and their own numbers."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from cli.conftest import Run
from pinprick import load_model, load_subset, run_attack
from pinprick.attacks import Greedy

MODEL = ("--model", "cli_test_models:colours", "--quiet", "--json")
FEW = ("--figures", "0")  # they take the time
GREEDY = (*MODEL, *FEW, "--attack", "greedy")
COLOURS = {"red": (150, 100, 50), "green": (90, 160, 30), "blue": (20, 60, 200)}


@pytest.fixture(autouse=True)
def sets(tmp_path: Path) -> None:
    """The same nine pictures as tensors, as folders, and as a list with targets."""
    images, labels, lines = [], [], ["file,label"]
    for turn in range(3):
        for label, (name, colour) in enumerate(COLOURS.items()):
            values = [value + 3 * turn for value in colour]
            images.append(torch.tensor(values, dtype=torch.uint8).view(3, 1, 1).expand(3, 8, 8))
            labels.append(label)
            path = tmp_path / "folders" / name / f"{turn}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), tuple(values)).save(path)
            lines.append(f"{path},{name}")
    (tmp_path / "list.csv").write_text("\n".join(lines))
    tensors = {"images": torch.stack(images), "labels": torch.tensor(labels)}
    words = {"classes": json.dumps(list(COLOURS))}
    save_file(tensors, tmp_path / "colours.safetensors", words)


def test_labels_and_names_come_from_the_set(run: Run, tmp_path: Path) -> None:
    shell = run("attack", *GREEDY, "--data", "tensors:colours.safetensors[2:7]", "--limit", "4")
    assert shell.status == 0
    document = json.loads(shell.out)
    assert document["data"] == "tensors:colours.safetensors[split=test][2:7][0:4]"
    rows = document["images"]
    assert [row["name"] for row in rows] == [f"colours-{i}" for i in (2, 3, 4, 5)]
    assert [row["label_name"] for row in rows] == ["blue", "red", "green", "blue"]
    assert {row["label_from"] for row in rows} == {"data"}
    assert all(row["success"] for row in rows)
    assert (tmp_path / "pinprick-out" / "colours-3-adversarial.png").exists()


def test_an_image_is_attacked_the_same_in_any_subset(run: Run) -> None:
    pgd = (*MODEL, *FEW, "--attack", "pgd", "--option", "steps=2", "--option", "eps=0.02")

    def changes(text: str) -> dict[str, float]:
        rows = json.loads(run("attack", *pgd, "--data", text).out)["images"]
        return {row["name"]: row["l2"] for row in rows}

    whole = changes("tensors:colours.safetensors")
    some = changes("tensors:colours.safetensors[class=blue]")
    assert list(some) == ["colours-2", "colours-5", "colours-8"]
    assert some == {name: whole[name] for name in some}
    assert len(set(whole.values())) == 9  # so that another stream would be seen


def test_a_large_set_is_read_in_groups(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("attack", *GREEDY, "--data", "folder:folders", "--batch-size", "1")
    once = json.loads(run(*command).out)["images"]
    monkeypatch.setattr("pinprick.jobs.pictures._ELEMENTS", 2 * 3 * 8 * 8)
    in_groups = json.loads(run(*command).out)["images"]
    for row in (*once, *in_groups):
        del row["seconds"]
    assert in_groups == once
    assert [row["name"] for row in once[:2]] == ["0-0", "1-1"]
    assert [row["label_name"] for row in once] == ["blue"] * 3 + ["green"] * 3 + ["red"] * 3


def test_classes_go_by_name_in_whatever_order(run: Run) -> None:
    shell = run("attack", *MODEL[:2], *FEW, "--attack", "greedy", "--data", "csv:list.csv")
    assert "classes of csv:list.csv are numbered as colours numbers those names" in shell.err
    assert "fooled 9 of 9 images that were classified correctly" in shell.out


def test_other_names_are_refused_unless_labels_go_by_number(run: Run) -> None:
    arguments = ("check", "--model", "cli_test_models:small", "--data", "tensors:tiny.safetensors")
    images = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    images[:, 0] = 9
    words = {"classes": json.dumps(list(COLOURS))}
    save_file({"images": images, "labels": torch.tensor([0])}, "tiny.safetensors", words)
    refused = run(*arguments)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == (
        "pinprick: labels of tensors:tiny.safetensors cannot go by name: small has no class called "
        "'red', only r, g, b; give both the same names, or use --labels-by-number (by_number=True, "
        "in a plan labels_by_number = true) if their order is the same\n"
    )
    shell = run(*arguments, "--labels-by-number")
    assert "call 3 of 3 classes by other names, such as 'red' and 'r'" in shell.err


def test_labels_by_number_need_a_set(run: Run, picture: Path) -> None:
    shell = run("attack", picture, *GREEDY, "--labels-by-number")
    assert (shell.status, "--labels-by-number is for --data" in shell.err) == (2, True)


def test_python_gives_the_labels_of_the_shell(run: Run) -> None:
    """The folder's classes are blue, green, red; the model's red, green, blue."""
    rows = json.loads(run("attack", *GREEDY, "--data", "folder:folders").out)["images"]
    model, data = load_model("cli_test_models:colours"), load_subset("folder:folders")
    result = run_attack(Greedy(), model, data)
    assert data.labels.tolist() != result.goal.labels.tolist()
    assert [row["label"] for row in rows] == result.goal.labels.tolist()
    assert [row["l0_pixels"] for row in rows] == result.l0_pixels.tolist()
    assert result.fooling_rate == 1


def write_numbers(form: str, labels: list[int]) -> str:
    """A set of blue images with these labels and no names; what --data calls it."""
    pixels = torch.zeros(len(labels), 3, 8, 8, dtype=torch.uint8)
    pixels[:, 2] = 200
    if form == "tensors":
        save_file({"images": pixels, "labels": torch.tensor(labels)}, "n.safetensors")
        return "tensors:n.safetensors"
    lines = ["file,label"]
    for row, label in enumerate(labels):
        path = Path("numbers") / str(label) / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (0, 0, 200)).save(path)
        lines.append(f"{path},{label}")
    Path("n.csv").write_text("\n".join(lines))
    return {"csv": "csv:n.csv", "folder": "folder:numbers"}[form]


@pytest.mark.parametrize(
    ("form", "model"),
    [("tensors", "colours"), ("csv", "colours"), ("folder", "colours"), ("tensors", "nameless")],
)
def test_numbers_are_the_models_classes(run: Run, form: str, model: str) -> None:
    data = write_numbers(form, [0, 0, 1])  # the model's last class is not among them
    chosen = ("--model", f"cli_test_models:{model}", *GREEDY[2:])
    shell = run("attack", *chosen, "--data", data)
    assert shell.status == 0
    assert [row["label"] for row in json.loads(shell.out)["images"]] == [0, 0, 1]
    some = run("attack", *chosen, "--data", f"{data}[class=1]")
    assert [row["label"] for row in json.loads(some.out)["images"]] == [1]


@pytest.mark.parametrize("form", ["tensors", "csv", "folder"])
@pytest.mark.parametrize("label", [3, 999_999_999])
def test_a_number_that_the_model_lacks_is_one_line(run: Run, form: str, label: int) -> None:
    data = write_numbers(form, [0, label])
    shell = run("attack", *GREEDY, "--data", data)
    assert (shell.status, shell.out) == (2, "")
    assert shell.err.startswith(f"pinprick: image 1 of {data}")
    assert f"is labelled {label}, but colours has 3 classes, numbered from 0 to 2" in shell.err
    assert len(shell.err.splitlines()) == 1
    check = run("data", "check", data, "--json")
    (part,) = json.loads(check.out)["parts"]
    assert part["by_class"] == {"class 0": 1, f"class {label}": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--data", "folder:synsets"),
        ("--data", "csv:synsets.csv"),
        ("synsets/n01440764", "synsets/n01443537/0.png"),
        ("synsets/n01440764/0.png", "a.png", "--label", "n01440764", "--label", "n01443537"),
    ],
    ids=" ".join,
)
def test_synsets_of_imagenet_are_understood(run: Run, arguments: tuple[str, ...]) -> None:
    lines = ["file,label"]
    for name in ("n01443537", "n01440764"):  # goldfish is class 1 and tench class 0
        path = Path("synsets") / name / "0.png"
        path.parent.mkdir(parents=True)
        Image.new("RGB", (8, 8), (9, 9, 200)).save(path)
        lines.insert(1, f"{path},{name}")
    Image.new("RGB", (8, 8), (9, 9, 200)).save("a.png")
    Path("synsets.csv").write_text("\n".join(lines))
    model = ("--model", "cli_test_models:thousand", *GREEDY[2:])
    shell = run("attack", *model, *arguments)
    assert [row["label"] for row in json.loads(shell.out)["images"]] == [0, 1]
    assert "model" not in {row["label_from"] for row in json.loads(shell.out)["images"]}


def test_a_folder_of_class_folders_is_a_set(run: Run) -> None:
    shell = run("attack", *GREEDY, "folders")
    assert shell.err.startswith("pinprick: there is no picture to work on; class folders are read")
    assert shell.err.endswith("by --data folder:folders\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "fashion_sample"), "has images of 28 x 28, but colours takes 8 x 8"),
        (("--data", "tensors:two.safetensors"), "colours has no class called"),
        (
            ("--data", "tensors:grey.safetensors"),
            "colours does not take tensors:grey.safetensors[0], an image of (1, 8, 8): ",
        ),
        (("--data", "tensors:none.safetensors"), "there is no picture to work on in tensors:none"),
        (("--data", "tensors:gone.safetensors"), "there is no such file"),
        (("--data", "cifar", "--root", "."), "no dataset is called 'cifar'"),
        (("--data", "cifar10", "--root", "."), "get it with: pinprick data get cifar10 --root ."),
        (("--data", "tensors:colours.safetensors", "--label", "red"), "leave --label out"),
        (("--data", "tensors:colours.safetensors", "x.png"), "give pictures, or a dataset"),
        (("--data", "tensors:colours.safetensors", "--target", "given"), "gives no targets"),
        (("--limit", "3"), "--limit is for --data"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_sets_that_do_not_fit_are_one_line(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    for name, shape in (("two", (1, 3, 8, 8)), ("grey", (1, 1, 8, 8)), ("none", (0, 3, 8, 8))):
        classes = ["a", "b"] if name == "two" else ["red", "green", "blue"]
        labels = torch.zeros(shape[0], dtype=torch.long)
        tensors = {"images": torch.zeros(shape, dtype=torch.uint8), "labels": labels}
        save_file(tensors, f"{name}.safetensors", {"classes": json.dumps(classes)})
    shell = run("attack", *GREEDY, *arguments)
    assert (shell.status, shell.out) == (2, "")
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1


def test_targets_of_the_set(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinprick.data.sets.csv_file.imagenet_classes", lambda: tuple(COLOURS))
    (tmp_path / "nips.csv").write_text(
        "ImageId,TrueLabel,TargetClass\nfolders/red/0,1,3\nfolders/blue/1,3,2\n"
    )
    shell = run("attack", *GREEDY, "--data", "csv:nips.csv", "--target", "given")
    rows = json.loads(shell.out)["images"]
    assert [row["target_name"] for row in rows] == ["blue", "green"]
    assert all(row["success"] for row in rows)


def test_broken_files_are_named_and_the_others_keep_their_numbers(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folders" / "blue" / "1.png").write_text("not a picture")
    shell = run("attack", *GREEDY, "--data", "folder:folders[:3]")
    assert shell.status == 2
    assert shell.err.startswith("pinprick: folders/blue/1.png: not a picture")
    document = json.loads(shell.out)
    assert [row["name"] for row in document["images"]] == ["0-0", "2-2"]
    assert [Path(file["path"]).name for file in document["unreadable"]] == ["1.png"]


def test_figures_can_be_few(run: Run, tmp_path: Path) -> None:
    data = ("--data", "tensors:colours.safetensors")
    shell = run("attack", *GREEDY, *data, "--figures", "2", "--batch-size", "4")
    files = [row["files"]["figure"] for row in json.loads(shell.out)["images"]]
    assert files == ["colours-0-figure.png", "colours-1-figure.png", *[None] * 7]
    assert len(list((tmp_path / "pinprick-out").glob("*-figure.png"))) == 2


def test_compare_takes_images_of_a_set(run: Run, tmp_path: Path) -> None:
    data = ("--data", "tensors:colours.safetensors[class=green]", "--limit", "2")
    shell = run("compare", *MODEL, "--attacks", "fgsm,greedy", *data)
    document = json.loads(shell.out)
    assert document["data"].endswith("[class=green][0:2]")
    assert [row["name"] for row in document["images"]] == ["colours-1", "colours-4"]
    assert {row["label_from"] for row in document["images"]} == {"data"}


def test_check_knows_the_accuracy_on_a_set(run: Run, tmp_path: Path) -> None:
    shell = run("check", *MODEL, "--data", "tensors:colours.safetensors")
    assert json.loads(shell.out)["data"] == "tensors:colours.safetensors[split=test]"
    assert "accuracy" not in {flag["name"] for flag in json.loads(shell.out)["flags"]}
    images = torch.zeros(9, 3, 8, 8, dtype=torch.uint8)
    images[:, 0] = 200  # all of them red
    wrong = {"images": images, "labels": torch.tensor([1, 2] * 4 + [2])}
    save_file(wrong, tmp_path / "wrong.safetensors", {"classes": json.dumps(list(COLOURS))})
    shell = run("check", *MODEL, "--data", "tensors:wrong.safetensors")
    assert any("accura" in flag["name"] for flag in json.loads(shell.out)["flags"])
