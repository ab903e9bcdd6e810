"""``pinprick data`` gets sets, checks them, and writes down draws."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
import torch
from data.conftest import write_idx_set
from data.server import open_shop
from PIL import Image
from safetensors.torch import save_file

from cli.conftest import Run


def test_every_part_has_help(run: Run) -> None:
    shell = run("data")
    assert shell.status == 0
    for command in ("list", "get", "check", "draw"):
        assert f"\n  {command} " in shell.out
        text = run("data", command, "--help").out
        assert f"Usage: pinprick data {command}" in text
        assert "--root DIR" in text
        assert "--json" in text
    assert "..." not in shell.out.partition("Commands:")[2]


def test_the_list_says_what_is_there(run: Run, tmp_path: Path) -> None:
    write_idx_set(tmp_path / "sets" / "MNIST" / "raw")
    lines = run("data", "list", "--root", "sets").out.splitlines()
    there = {line.split()[0]: line.split()[-1] for line in lines if line.strip()}
    assert (there["mnist"], there["cifar10"], there["fashion_sample"]) == ("yes", "-", "yes")
    document = json.loads(run("data", "list", "--root", "sets", "--json").out)
    mnist = document["datasets"][0]
    assert mnist["images"] == {"train": 60000, "test": 10000}
    assert (mnist["shape"], mnist["there"]) == ([1, 28, 28], True)


def test_a_set_is_fetched_and_then_checked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision.datasets import MNIST

    write_idx_set(tmp_path / "made")
    with open_shop() as shop:
        resources = []
        for name, _ in MNIST.resources:
            shop.files[f"/{name}"] = gzip.compress(
                (tmp_path / "made" / Path(name).stem).read_bytes()
            )
            resources.append((name, hashlib.md5(shop.files[f"/{name}"]).hexdigest()))
        monkeypatch.setattr(MNIST, "resources", resources)
        monkeypatch.setattr(MNIST, "mirrors", [f"{shop.address}/"])
        shell = run("data", "get", "mnist", "--root", "sets")
        assert (shell.status, shell.out) == (0, "mnist is in sets/MNIST/raw\n")
        assert len(shop.asked) == 4
        assert run("data", "get", "mnist", "--root", "sets", "--json").status == 0
        assert len(shop.asked) == 4
    shell = run("data", "check", "mnist", "--root", "sets")
    assert shell.status == 2  # it is far too small
    assert "train has 7 images and not 60000" in shell.err


def test_what_comes_with_the_package_is_nowhere_else(run: Run) -> None:
    shell = run("data", "get", "fashion_sample", "--root", "sets")
    assert (shell.status, shell.out) == (0, "fashion_sample comes with the package\n")


def test_a_whole_set_is_counted_and_has_a_hash(run: Run) -> None:
    shell = run("data", "check", "fashion_sample")
    assert (shell.status, shell.err) == (0, "")
    assert "fashion_sample/test: 64 images, contents 5e5103be3732c7f8" in shell.out
    assert "ankle boot       4" in shell.out
    assert shell.out.endswith("fashion_sample: nothing to fix\n")
    (part,) = json.loads(run("data", "check", "fashion_sample", "--json").out)["parts"]
    assert sum(part["by_class"].values()) == part["images"] == 64


def picture(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), (value, 0, 0)).save(path)


def test_damaged_and_mislabelled_files_are_named(run: Run, tmp_path: Path) -> None:
    for i, name in enumerate(("cat/a.png", "cat/b.png", "dog/c.png", "dog/d.png")):
        picture(tmp_path / "pets" / name, i)
    picture(tmp_path / "pets" / "dog" / "e.png", 0)  # the first cat
    whole = json.loads(run("data", "check", "folder:pets", "--json").out)
    assert whole["parts"][0]["by_class"] == {"cat": 2, "dog": 3}
    (fault,) = whole["faults"]
    assert fault["path"] == "pets/dog/e.png"
    assert fault["reason"] == "the same picture as pets/cat/a.png: dog here and cat there"
    assert whole["parts"][0]["contents"]

    half = tmp_path / "pets" / "cat" / "b.png"
    half.write_bytes(half.read_bytes()[:50])
    shell = run("data", "check", "folder:pets")
    assert shell.status == 2
    assert "pinprick: pets/cat/b.png: the picture is broken" in shell.err
    assert "folder:pets: 5 images, not whole" in shell.out
    assert "nothing to fix" not in shell.out


def test_a_changed_picture_or_label_changes_the_hash(run: Run, tmp_path: Path) -> None:
    def contents() -> str:
        document = json.loads(run("data", "check", "folder:pets", "--json").out)
        return str(document["parts"][0]["contents"])

    picture(tmp_path / "pets" / "cat" / "a.png", 1)
    picture(tmp_path / "pets" / "dog" / "b.png", 2)
    first = contents()
    picture(tmp_path / "pets" / "dog" / "b.png", 3)
    second = contents()
    picture(tmp_path / "pets" / "dog" / "b.png", 2)
    (tmp_path / "pets" / "cat" / "a.png").rename(tmp_path / "pets" / "cat" / "z.png")
    assert contents() == first  # names of files are not contents
    (tmp_path / "pets" / "cat" / "z.png").rename(tmp_path / "pets" / "dog" / "a.png")
    picture(tmp_path / "pets" / "cat" / "c.png", 2)
    assert len({first, second, contents()}) == 3


def test_both_splits_of_a_folder_are_checked(run: Run, tmp_path: Path) -> None:
    for name in ("train/cat/a.png", "test/cat/b.png"):
        picture(tmp_path / "pets" / name, len(name))
    document = json.loads(run("data", "check", "folder:pets", "--json").out)
    assert [part["source"] for part in document["parts"]] == [
        "folder:pets/train",
        "folder:pets/test",
    ]


def test_a_damaged_split_is_named_beside_a_whole_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    images = torch.zeros(2, 1, 4, 4, dtype=torch.uint8)
    for part, labels in (("train", [0, -1]), ("test", [0, 1])):
        held = {"images": images, "labels": torch.tensor(labels)}
        save_file(held, tmp_path / "own" / f"{part}.safetensors")
    shell = run("data", "check", "tensors:own")
    assert shell.status == 2
    assert shell.err == (
        "pinprick: tensors:own: image 1 of tensors:own/train is labelled -1, "
        "but classes count from 0\n"
    )
    (tmp_path / "own" / "train.safetensors").unlink()
    assert run("data", "check", "tensors:own").status == 0  # one split will do


def test_a_label_beyond_the_classes_is_found(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "sets" / "MNIST" / "raw"
    write_idx_set(folder)
    labels = (folder / "train-labels-idx1-ubyte").read_bytes()
    (folder / "train-labels-idx1-ubyte").write_bytes(labels[:-1] + b"\xc8")
    shell = run("data", "check", "mnist", "--root", "sets")
    assert shell.status == 2
    assert "image 6 of mnist/train is labelled 200, but there are 10 classes" in shell.err


def test_splits_that_name_other_classes_are_a_fault(run: Run, tmp_path: Path) -> None:
    for i, name in enumerate(("train/cat/a.png", "train/dog/b.png", "test/cat/c.png")):
        picture(tmp_path / "pets" / name, i)
    shell = run("data", "check", "folder:pets")
    assert shell.status == 2
    assert shell.err == "pinprick: folder:pets: train and test name other classes\n"


def test_a_draw_is_written_down_and_named_by_its_file(run: Run, tmp_path: Path) -> None:
    shell = run("data", "draw", "fashion_sample[random=6,seed=7]", "--out", "six.txt")
    assert shell.out == "6 images of fashion_sample/test are listed in six.txt\n"
    assert (tmp_path / "six.txt").read_text().splitlines() == [
        "# images of fashion_sample/test",
        "# fashion_sample/test[random=6,seed=7]",
        *map(str, (4, 7, 12, 26, 59, 63)),
    ]
    again = run("data", "draw", "fashion_sample[@six.txt]", "--out", "again.txt", "--json")
    assert json.loads(again.out)["indices"] == [4, 7, 12, 26, 59, 63]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("get", "cifar"), "no dataset is called 'cifar'; did you mean cifar10"),
        (("get", "imagenet"), "put ILSVRC2012_img_val.tar"),
        (("check", "mnist"), "t10k-labels-idx1-ubyte: there is no such file"),
        (("check", "folder:gone"), "gone: there is no such folder"),
        (("draw", "fashion_sample[ten]", "--out", "a"), "[ten] is no choice of images"),
        (("draw", "fashion_sample", "--out", "six.txt/a"), "cannot write six.txt/a"),
        (("draw", "fashion_sample"), "Missing option '--out'; see pinprick data draw --help"),
        (("fetch",), "see pinprick data --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "six.txt").write_text("6\n")
    root = () if arguments == ("fetch",) else ("--root", "empty")
    shell = run("data", *arguments, *root)
    assert (shell.status, shell.out) == (2, "")
    assert message in shell.err
    assert all(line.startswith("pinprick: ") for line in shell.err.splitlines())
