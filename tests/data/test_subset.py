"""A subset is one line of text: there and back, and the same images for ever."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from pinprick import BadInput, PinprickError
from pinprick.data import load_data
from pinprick.data.select import apply_step, load_subset, read_index, write_index
from pinprick.data.subset import Draw, InIndexFile, OfClass, Range, Subset, describe, parse

SAMPLE = "fashion_sample/test"


@pytest.mark.parametrize(
    ("text", "subset"),
    [
        ("cifar10", Subset("cifar10")),
        ("cifar10/train", Subset("cifar10", "train")),
        ("mnist/both[17]", Subset("mnist", "both", (Range(17, 18),))),
        ("mnist[:100]", Subset("mnist", "test", (Range(0, 100),))),
        ("mnist[5:9:2]", Subset("mnist", "test", (Range(5, 9, 2),))),
        ("mnist[7:]", Subset("mnist", "test", (Range(7),))),
        ("mnist[random=9]", Subset("mnist", "test", (Draw(9),))),
        ("mnist[class=T-shirt/top | 3]", Subset("mnist", "test", (OfClass(("T-shirt/top", "3")),))),
        ("mnist[@a/b.txt]", Subset("mnist", "test", (InIndexFile("a/b.txt"),))),
        ("folder:a/train", Subset("folder:a/train")),
        ("csv:a.csv[split=both][:3]", Subset("csv:a.csv", "both", (Range(0, 3),))),
        (
            "folder:a[1]/b[class=x][:2]",
            Subset("folder:a[1]/b", "test", (OfClass(("x",)), Range(0, 2))),
        ),
    ],
)
def test_text_is_read(text: str, subset: Subset) -> None:
    assert parse(text) == subset
    assert parse(describe(subset)) == subset


def test_the_words_of_a_subset_spell_out_its_defaults() -> None:
    assert describe(parse("cifar10")) == "cifar10/test"
    assert describe(parse("cifar10[:5][random=2]")) == "cifar10/test[0:5][random=2,seed=0]"
    assert describe(parse("folder:a")) == "folder:a[split=test]"


_steps = some.one_of(
    some.builds("{}:{}:{}".format, some.integers(0, 9), some.integers(10, 99), some.integers(1, 9)),
    some.builds("random={},seed={}".format, some.integers(1, 99), some.integers(0, 99)),
    some.sampled_from(["17", ":", "5:", "class=cat", "class=3|ankle boot", "@chosen.txt"]),
)


@given(
    some.sampled_from(["mnist", "mnist/both", "folder:a/b", "csv:list.csv[split=train]"]),
    some.lists(_steps, max_size=3),
)
def test_every_subset_survives_being_written_down(head: str, steps: list[str]) -> None:
    subset = parse(head + "".join(f"[{step}]" for step in steps))
    assert len(subset.steps) == len(steps)
    assert parse(describe(subset)) == subset


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mnist/val", "no split is called 'val'"),
        ("mnist/test[split=train]", "given twice"),
        ("mnist[3:3]", "holds no image"),
        ("mnist[random=0]", "holds no image"),
        ("mnist[::0]", "holds no image"),
        ("mnist[cat]", r"\[cat\] is no choice of images; write \[0:100\]"),
        ("mnist[-5:]", "no choice of images"),
        ("mnist[]", "no choice of images"),
        ("mnist[class=]", "no choice of images"),
        ("mnist[0:5", "a set is written NAME/SPLIT"),
        ("", "a set is written NAME/SPLIT"),
        (f"{SAMPLE}[0:65]", "there is no image 64 among 64"),
        (f"{SAMPLE}[64:]", "there is no image"),
        (f"{SAMPLE}[random=65]", "cannot draw 65 from 64"),
        (f"{SAMPLE}[class=10]", "from 0 to 9, got 10"),
        (f"{SAMPLE}[class=boot]", "did you mean ankle boot"),
        (f"{SAMPLE}[0:1][class=bag]", r"no image .* is left by \[class=bag\]"),
        (f"{SAMPLE}[@gone.txt]", "No such file"),
        (f"{SAMPLE}[{'9' * 5000}]", "no choice of images"),
        (f"{SAMPLE}[0:{'9' * 5000}]", "no choice of images"),
        (f"{SAMPLE}[random={'9' * 5000}]", "no choice of images"),
        (f"{SAMPLE}[random=3,seed={'9' * 5000}]", "no choice of images"),
        (f"{SAMPLE}[class={'9' * 5000}]", "from 0 to 9, got 999"),
    ],
    ids=lambda text: text[:50],
)
def test_what_is_wrong_is_one_line(text: str, message: str) -> None:
    with pytest.raises(PinprickError, match=message):
        load_subset(text)


def test_steps_follow_one_another_and_numbers_stay() -> None:
    whole = load_data("fashion_sample")
    boots = load_subset(f"{SAMPLE}[class=Ankle Boot]")
    assert set(boots.labels.tolist()) == {9}
    assert torch.equal(boots.images(), whole.images()[boots.indices])
    second = load_subset(f"{SAMPLE}[class=ankle boot][1]")
    assert second.indices.tolist() == boots.indices[1:2].tolist()


def test_a_step_may_be_longer_than_the_set() -> None:
    assert load_subset(f"{SAMPLE}[3::999999999999999999]").indices.tolist() == [3]


def test_a_draw_is_the_same_for_ever() -> None:
    drawn = load_subset(f"{SAMPLE}[random=6,seed=7]").indices.tolist()
    assert drawn == [4, 7, 12, 26, 59, 63]
    assert set(drawn) < set(load_subset(f"{SAMPLE}[random=20,seed=7]").indices.tolist())
    assert drawn != load_subset(f"{SAMPLE}[random=6,seed=8]").indices.tolist()


def test_a_draw_is_of_all_images_alike() -> None:
    data = load_data("fashion_sample")
    times = torch.zeros(64)
    for seed in range(100):
        times[apply_step(data, Draw(16, seed)).indices] += 1
    assert times.mean() == 25
    assert (times - 25).abs().max() < 4 * (100 * 0.25 * 0.75) ** 0.5


def test_an_index_file_gives_the_same_images_back(tmp_path: Path) -> None:
    drawn = load_subset(f"{SAMPLE}[random=6,seed=7]")
    write_index(drawn, tmp_path / "six.txt", made="fashion_sample/test[random=6,seed=7]")
    again = load_subset(f"{SAMPLE}[@{tmp_path / 'six.txt'}]")
    assert torch.equal(again.images(), drawn.images())
    assert [path.name for path in tmp_path.iterdir()] == ["six.txt"]


def test_an_index_file_keeps_its_own_order(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("\ufeff# mine\n17\n\n3\n", encoding="utf-8")
    assert load_subset(f"{SAMPLE}[@{tmp_path / 'some.txt'}]").indices.tolist() == [17, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# images of mnist/test\n3\n", "is of mnist/test, not of fashion_sample/test"),
        ("3\ncat\n", "'cat' in line 2 of the index .* is not the number of an image"),
        ("3\n-1\n", "'-1' in line 2"),
        (f"3\n{'9' * 5000}\n", "'999.*' in line 2 of the index .* is not the number of an image"),
        ("3\n4\n3\n", "'3' in line 3 of the index .* comes twice"),
        ("# nothing\n", "lists no images"),
    ],
)
def test_an_index_file_that_is_wrong_names_the_line(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_index(tmp_path / "a.txt", SAMPLE)


@pytest.mark.parametrize(
    ("made", "source", "fits"),
    [
        ("folder:/there/pets/train", "folder:here/train", True),
        ("csv:/there/list.csv", "csv:list.csv", True),
        ("folder:pets/train", "folder:pets/test", False),
        ("folder:pets", "csv:pets", False),
        ("mnist/test", "folder:pets", False),
        ("folder:pets", "mnist/test", False),
    ],
)
def test_an_index_of_files_goes_by_kind_and_split(
    tmp_path: Path, made: str, source: str, fits: bool
) -> None:
    (tmp_path / "a.txt").write_text(f"# images of {made}\n3\n")
    if fits:
        assert read_index(tmp_path / "a.txt", source) == [3]
    else:
        with pytest.raises(BadInput, match=f"is of {made}, not of {source}"):
            read_index(tmp_path / "a.txt", source)


def test_an_index_past_the_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("64\n")
    with pytest.raises(BadInput, match="lists image 64, which is not in fashion_sample/test"):
        load_subset(f"{SAMPLE}[@{tmp_path / 'a.txt'}]")
