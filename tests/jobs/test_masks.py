"""White pixels of a mask may change, black ones may not."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from pinprick import BadInput, Classifier
from pinprick.attacks import FGSM, Greedy
from pinprick.data.pictures import PictureRecord
from pinprick.jobs.attack import attack_pictures
from pinprick.jobs.compare import compare_attacks
from pinprick.jobs.explain import explain_pictures
from pinprick.jobs.masks import read_masks
from pinprick.jobs.pictures import PictureSource
from pinprick.report.png import read_png


def save(values: Tensor, path: Path) -> Path:
    Image.fromarray(values.to(torch.uint8).numpy()).save(path)
    return path


@pytest.fixture
def half() -> Tensor:
    """8 x 8, of which the left half is white."""
    return (torch.arange(8) < 4).expand(8, 8) * 255


@pytest.fixture
def wide(tmp_path: Path) -> PictureRecord:
    """A picture of 16 x 32, of which a model of 8 x 8 sees the middle half at half its size."""
    Image.new("RGB", (32, 16), (150, 100, 50)).save(tmp_path / "wide.png")
    return PictureRecord("wide", tmp_path / "wide.png")


def line_of(path: Path, record: PictureRecord, model: Classifier) -> str:
    with pytest.raises(BadInput) as error:
        read_masks(path, [record], torch.zeros(1, 3, 8, 8), model)
    return str(error.value)


def test_a_mask_of_the_size_that_the_model_sees_is_used_as_it_is(
    colours: Classifier, wide: PictureRecord, half: Tensor, tmp_path: Path
) -> None:
    images = torch.zeros(2, 3, 8, 8)
    in_memory = PictureRecord("own-test-3", Path("own/test[3]"))
    masks = read_masks(save(half, tmp_path / "m.png"), [wide, in_memory], images, colours)
    assert torch.equal(masks, (half > 0).expand(2, 1, 8, 8))


def test_a_mask_of_the_size_of_the_file_is_cropped_like_the_picture(
    colours: Classifier, wide: PictureRecord, tmp_path: Path
) -> None:
    white = (torch.arange(32) < 16).expand(16, 32) * 255  # the left half, also of the middle
    masks = read_masks(save(white, tmp_path / "m.png"), [wide], torch.zeros(1, 3, 8, 8), colours)
    assert torch.equal(masks[0, 0], (torch.arange(8) < 4).expand(8, 8))
    edge = save((torch.arange(32) < 6).expand(16, 32) * 255, tmp_path / "edge.png")
    assert line_of(edge, wide, colours) == (
        f"the mask {edge} has no white pixel for wide, so nothing may change; "
        "its largest value is 255, white is 255"
    )


def test_grey_counts_as_white_from_the_middle_on(
    colours: Classifier, wide: PictureRecord, tmp_path: Path
) -> None:
    values = torch.zeros(8, 8)
    values[0, 0], values[0, 1] = 127, 128
    masks = read_masks(save(values, tmp_path / "m.png"), [wide], torch.zeros(1, 3, 8, 8), colours)
    assert masks.nonzero().tolist() == [[0, 0, 0, 1]]


def test_other_sizes_are_refused_with_those_that_fit(
    colours: Classifier, wide: PictureRecord, tmp_path: Path
) -> None:
    other = save(torch.full((5, 6), 255), tmp_path / "m.png")
    assert line_of(other, wide, colours) == (
        f"the mask {other} has 5 x 6 pixels, but the model sees wide with 8 x 8, "
        "and its file has 16 x 32; draw the mask in that size"
    )
    in_memory = PictureRecord("own-test-3", Path("own/test[3]"))
    assert line_of(other, in_memory, colours) == (
        f"the mask {other} has 5 x 6 pixels, but the model sees own-test-3 with 8 x 8; "
        "draw the mask in that size"
    )


def test_masks_that_mean_nothing_are_refused(
    colours: Classifier, wide: PictureRecord, tmp_path: Path
) -> None:
    ones = save(torch.ones(8, 8), tmp_path / "ones.png")
    assert "its largest value is 1, white is 255" in line_of(ones, wide, colours)
    clear = tmp_path / "clear.png"
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(clear)
    assert "is partly transparent; draw it in black and white" in line_of(clear, wide, colours)
    gone = tmp_path / "gone.png"
    line = f"the mask {gone} cannot be read: there is no such file"
    assert line_of(gone, wide, colours) == line


def test_a_folder_has_a_mask_per_picture_by_name(
    colours: Classifier, wide: PictureRecord, half: Tensor, tmp_path: Path
) -> None:
    folder = tmp_path / "masks"
    folder.mkdir()
    save(half, folder / "wide.png")
    save(255 - half, folder / "own-test-3.png")
    other = PictureRecord("own-test-3", Path("own/test[3]"))
    masks = read_masks(folder, [other, wide], torch.zeros(2, 3, 8, 8), colours)
    assert torch.equal(masks[:, 0], torch.stack([half == 0, half > 0]))
    assert line_of(folder, PictureRecord("cat", Path("cat.jpg")), colours) == (
        f"the folder of masks {folder} has no cat.png; "
        "it must hold one PNG per picture, by the names in the table or of the files"
    )


@pytest.mark.parametrize("kind", ["pictures", "data"])
def test_attack_compare_and_explain_keep_to_a_mask(
    kind: str, colours: Classifier, half: Tensor, tmp_path: Path
) -> None:
    folder = tmp_path / "set" / "red"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        Image.new("RGB", (8, 8), (150, 100, 50)).save(folder / f"{name}.png")
    mask = save(half, tmp_path / "m.png")
    source = (
        PictureSource(paths=[folder], mask=mask)
        if kind == "pictures"
        else PictureSource(data=f"folder:{folder.parent}", mask=mask)
    )
    out, clean = tmp_path / "out", torch.tensor([150, 100, 50]).view(3, 1, 1) / 255
    attacked = attack_pictures(Greedy(), colours, source, out, figures=0)
    assert [picture.row.success for picture in attacked.pictures] == [True, True]
    for picture in attacked.pictures:
        changed = (read_png(picture.adversarial) != clean).any(dim=0)
        assert changed.any()
        assert not (changed & (half == 0)).any()
    assert json.loads((out / "result.json").read_text())["mask"] == str(mask)

    compared = compare_attacks([FGSM(eps=0.3), Greedy()], colours, source, out)
    columns = [column for one in compared.comparisons for column in one.columns]
    assert [column.row.l0_pixels for column in columns[::2]] == [32, 32]
    assert compared.document["mask"] == str(mask)

    explained = explain_pictures(Greedy(), colours, source, out, layer="none", figures=0)
    assert explained.document["mask"] == str(mask)
    for one in explained.pictures:
        assert all(column < 4 for group in one.explanation.groups for _, column in group.pixels)


def test_a_folder_of_masks_may_have_the_names_of_the_picture_files(
    colours: Classifier, half: Tensor, wide: PictureRecord, tmp_path: Path
) -> None:
    folder = tmp_path / "masks"
    folder.mkdir()
    save(half, folder / "wide.png")
    listed = PictureRecord("0-wide", wide.path)
    masks = read_masks(folder, [listed], torch.zeros(1, 3, 8, 8), colours)
    assert torch.equal(masks[0, 0], half > 0)
    save(255 - half, folder / "0-wide.png")
    masks = read_masks(folder, [listed], torch.zeros(1, 3, 8, 8), colours)
    assert torch.equal(masks[0, 0], half == 0), "the name in the table comes first"
    (folder / "0-wide.png").unlink()
    again = PictureRecord("1-wide", tmp_path / "other" / "wide.png")
    with pytest.raises(BadInput, match=r"has no 0-wide.png; it must hold one PNG per picture"):
        read_masks(folder, [listed, again], torch.zeros(2, 3, 8, 8), colours)
