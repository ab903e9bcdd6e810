"""The work of each command is one function that Python users can call, with a model of theirs."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from PIL import Image
from torch import Tensor

from pinprick import Classifier, Problem
from pinprick.attacks import FGSM, Greedy
from pinprick.errors import BadInput
from pinprick.jobs.attack import attack_pictures
from pinprick.jobs.attack_group import RunOptions
from pinprick.jobs.check import check_on_pictures
from pinprick.jobs.compare import compare_attacks
from pinprick.jobs.explain import explain_pictures
from pinprick.jobs.pictures import PictureSource
from pinprick.jobs.progress import Progress


@dataclass
class Told(Progress):
    """Keeps what a job tells."""

    remarks: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def brick(tmp_path: Path) -> PictureSource:
    Image.new("RGB", (8, 8), (150, 100, 50)).save(tmp_path / "brick.png")
    return PictureSource(paths=[tmp_path / "brick.png"])


def test_attack_gives_what_it_writes_and_prints_nothing(
    colours: Classifier, brick: PictureSource, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = attack_pictures(Greedy(), colours, brick, tmp_path / "out", figures=0)
    (picture,) = outcome.pictures
    assert (picture.record.name, picture.record.label_name) == ("brick", "red")
    assert (picture.record.label, picture.record.label_from) == (0, "model")
    assert (picture.row.success, picture.reread_fools, picture.figure) == (True, True, None)
    assert picture.adversarial.exists()
    assert outcome.document == json.loads((tmp_path / "out" / "result.json").read_text())
    assert (outcome.unreadable, outcome.failure) == ([], None)
    assert capsys.readouterr() == ("", "")


class _Slow(Greedy):
    """Says that its steps are slow."""

    def __call__(self, problem: Problem) -> Tensor:
        problem.note_slower("steps of the attack cannot be recorded: the device is busy")
        return super().__call__(problem)


def test_what_makes_an_attack_slower_is_told_once(
    colours: Classifier, brick: PictureSource, tmp_path: Path
) -> None:
    told, twice = Told(), replace(brick, paths=[*brick.paths] * 2)
    run = RunOptions(batch_size=1)
    attack_pictures(_Slow(), colours, twice, tmp_path / "out", run=run, figures=0, progress=told)
    remark = "the attack is slower: steps of the attack cannot be recorded: the device is busy"
    assert told.remarks.count(remark) == 1


def test_files_that_are_no_pictures_are_told_and_listed(
    colours: Classifier, brick: PictureSource, tmp_path: Path
) -> None:
    (tmp_path / "text.png").write_text("no picture")
    told = Told()
    source = PictureSource(paths=[tmp_path / "text.png", *brick.paths])
    outcome = attack_pictures(FGSM(), colours, source, tmp_path / "out", figures=0, progress=told)
    assert [file.path.name for file in outcome.unreadable] == ["text.png"]
    assert told.warnings == [f"{tmp_path / 'text.png'}: {outcome.unreadable[0].reason}"]
    assert [picture.record.name for picture in outcome.pictures] == ["brick"]


def test_a_remark_about_many_pictures_is_made_once_with_a_count(
    colours: Classifier, tmp_path: Path
) -> None:
    for name in "abcde":
        Image.new("RGBA", (8, 8), (200, 0, 0, 200)).save(tmp_path / f"{name}.png")
        (tmp_path / f"{name}.txt").write_text("no picture")
    told = Told()
    source = PictureSource(paths=[tmp_path])
    outcome = attack_pictures(FGSM(), colours, source, tmp_path / "out", figures=0, progress=told)
    pictures, texts = (
        ", ".join(str(tmp_path / f"{name}.{ending}") for name in "abc") for ending in ("png", "txt")
    )
    assert told.remarks == [f"{pictures} and 2 more: transparent, put on white"]
    reason = "not a picture, or of a kind that cannot be read"
    assert told.warnings == [f"{texts} and 2 more: {reason}"]
    assert [file.path.name for file in outcome.unreadable] == [f"{name}.txt" for name in "abcde"]


def test_a_set_of_pictures_needs_no_prepare_if_the_size_is_right(
    colours: Classifier, tmp_path: Path
) -> None:
    for name in ("red/a", "red/b", "blue/c", "blue/d"):
        file = tmp_path / "set" / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9 if name == "blue/d" else 8, 8), (150, 100, 50)).save(file)
    own = Classifier(colours.net, classes=colours.classes, size=(8, 8), name="own")
    source = PictureSource(data=f"folder:{tmp_path / 'set'}")
    told = Told()
    outcome = attack_pictures(FGSM(), own, source, tmp_path / "out", figures=0, progress=told)
    assert [picture.record.name for picture in outcome.pictures] == ["0-c", "2-a", "3-b"]
    (warning,) = told.warnings
    assert "own takes pictures of 8 x 8 and does not say how others are resized" in warning
    other = Classifier(colours.net, classes=colours.classes, size=(4, 4), name="own")
    told = Told()
    with pytest.raises(BadInput, match="there is no picture to work on"):
        attack_pictures(FGSM(), other, source, tmp_path / "out", figures=0, progress=told)
    (warning,) = told.warnings
    assert warning.startswith(f"{tmp_path / 'set' / 'blue' / 'c.png'}, ")
    assert "a.png and 1 more: own takes pictures of 4 x 4" in warning


def test_a_picture_that_the_network_does_not_take_is_named(
    colours: Classifier, brick: PictureSource, tmp_path: Path
) -> None:
    grey = Classifier(colours.net, mean=(0.5,), size=(8, 8), name="grey")
    with pytest.raises(BadInput, match=r"grey does not take .*brick\.png, an image of \(1, 8, 8\)"):
        attack_pictures(FGSM(), grey, brick, tmp_path / "out")


def test_a_part_of_a_dataset_without_a_readable_file_is_listed_too(
    colours: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinprick.jobs.pictures._ELEMENTS", 1)  # one file per part
    for name in ("blue/a", "green/b", "red/c", "red/d", "red/e"):
        file = tmp_path / "set" / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        if name in ("green/b", "red/d"):
            Image.new("RGB", (8, 8), (150, 100, 50)).save(file)
        else:
            file.write_text("no picture")
    source = PictureSource(data=f"folder:{tmp_path / 'set'}")
    outcome = attack_pictures(FGSM(), colours, source, tmp_path / "out", figures=0)
    assert [file.path.stem for file in outcome.unreadable] == ["a", "c", "e"]
    assert [picture.record.name for picture in outcome.pictures] == ["1-b", "3-d"]
    explained = explain_pictures(FGSM(), colours, source, tmp_path, layer="none", figures=0)
    assert explained.unreadable == outcome.unreadable
    assert [file.path.stem for file in check_on_pictures(colours, source).unreadable] == [
        "a",
        "c",
        "e",
    ]


def test_compare_gives_one_column_per_attack(
    colours: Classifier, brick: PictureSource, tmp_path: Path
) -> None:
    run = RunOptions(max_forwards=9)
    outcome = compare_attacks([FGSM(), Greedy()], colours, brick, tmp_path, run=run)
    (comparison,) = outcome.comparisons
    assert [column.name for column in comparison.columns] == ["fgsm", "greedy"]
    assert outcome.document["limits"]["max_forwards"] == 9
    assert (tmp_path / comparison.figure).exists()


def test_explain_gives_one_explanation_per_picture(
    colours: Classifier, brick: PictureSource, tmp_path: Path
) -> None:
    outcome = explain_pictures(Greedy(), colours, brick, tmp_path, layer="none", figures=0)
    (picture,) = outcome.pictures
    assert (picture.explanation.status, picture.rival_name) == ("fooled", "green")
    assert outcome.totals is None
    assert outcome.document == json.loads((tmp_path / "explanation.json").read_text())


def test_check_says_how_many_images_it_saw(colours: Classifier, brick: PictureSource) -> None:
    outcome = check_on_pictures(colours, brick)
    assert (outcome.model, outcome.images, outcome.flags) == ("colours", 1, [])


def test_pictures_and_a_dataset_do_not_mix() -> None:
    with pytest.raises(BadInput, match="but not both"):
        PictureSource(paths=[Path("a.png")], data="mnist")
    with pytest.raises(BadInput, match="leave --label out"):
        PictureSource(data="mnist", labels=["3"])
    with pytest.raises(BadInput, match="--limit is for --data"):
        PictureSource(limit=3)
