"""A set is cut without losing track of which image is which."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from pinprick import BadInput, Classifier
from pinprick.data.check import count_by_class
from pinprick.data.dataset import Dataset
from pinprick.zoo.prepare import as_it_is, short_side_and_crop


def small(count: int = 6) -> Dataset:
    pixels = torch.arange(count * 4, dtype=torch.uint8).view(count, 1, 2, 2)
    return Dataset(
        name="small",
        classes=("even", "odd"),
        labels=torch.arange(count) % 2,
        pixels=pixels,
        files=(),
        indices=torch.arange(count),
        source="small/test",
    )


def pictures(folder: Path, sizes: list[tuple[int, int]]) -> Dataset:
    files = []
    for i, size in enumerate(sizes):
        files.append(folder / f"{i}.png")
        Image.new("RGB", size, (i, 2 * i, 255)).save(files[-1])
    return Dataset(
        name="folder",
        classes=("a",),
        labels=torch.zeros(len(sizes), dtype=torch.long),
        pixels=None,
        files=tuple(files),
        indices=torch.arange(len(sizes)),
        source="folder",
    )


def test_images_are_in_the_unit_box_and_on_the_8_bit_grid() -> None:
    images = small().images()
    assert images.dtype == torch.float32
    assert torch.equal(images.flatten(), torch.arange(24) / 255)


@pytest.mark.parametrize(
    "rows", [torch.tensor([4, 1, 4]), torch.arange(6) % 3 == 1, slice(1, 5, 2)], ids=str
)
def test_a_cut_keeps_every_number_beside_its_image(rows: torch.Tensor | slice) -> None:
    whole = small()
    cut = whole[rows]
    assert cut.indices.tolist() == torch.arange(6)[rows].tolist()
    assert torch.equal(cut.images(), whole.images()[cut.indices])
    assert torch.equal(cut.labels, whole.labels[cut.indices])
    again = cut[torch.tensor([1])]
    assert again.indices.tolist() == [cut.indices.tolist()[1]]


def test_a_cut_of_files_keeps_them_too(tmp_path: Path) -> None:
    cut = pictures(tmp_path, [(4, 4)] * 3)[torch.tensor([False, True, True])]
    assert [path.name for path in cut.files] == ["1.png", "2.png"]
    model = Classifier(torch.nn.Flatten(), prepare=as_it_is)
    assert (cut.images(model)[:, 0, 0, 0] * 255).round().tolist() == [1, 2]


def test_batches_are_the_set_in_order(tmp_path: Path) -> None:
    model = Classifier(torch.nn.Flatten(), prepare=short_side_and_crop(4, 4))
    whole = pictures(tmp_path, [(4, 4), (8, 5), (4, 9)])
    batches = list(whole.batches(2, model))
    assert [len(images) for images, _ in batches] == [2, 1]
    assert torch.equal(torch.cat([images for images, _ in batches]), whole.images(model))


def test_files_are_read_a_batch_at_a_time(tmp_path: Path) -> None:
    whole = pictures(tmp_path, [(4, 4)] * 4)
    (tmp_path / "3.png").unlink()
    model = Classifier(torch.nn.Flatten(), prepare=as_it_is)
    batches = whole.batches(2, model)
    assert len(next(batches)[0]) == 2  # the missing file has not been looked at
    with pytest.raises(BadInput, match=r"3\.png: there is no such file"):
        next(batches)


def test_files_need_a_model_and_one_size(tmp_path: Path) -> None:
    whole = pictures(tmp_path, [(4, 4), (5, 4)])
    with pytest.raises(BadInput, match="say for which model"):
        whole.images()
    with pytest.raises(BadInput, match=r"1\.png becomes \(3, 4, 5\) and others \(3, 4, 4\)"):
        whole.images(Classifier(torch.nn.Flatten(), prepare=as_it_is, name="plain"))


def test_labels_that_do_not_fit_are_refused() -> None:
    whole = small()
    with pytest.raises(BadInput, match="small/test has 6 images and 5 labels"):
        replace(whole, labels=whole.labels[:5])
    wrong = torch.tensor([0, 1, 0, 2, 0, 0])
    with pytest.raises(BadInput, match="image 3 of small/test is labelled 2, but there are 2"):
        replace(whole, labels=wrong)


def test_labels_without_names_are_numbers_from_0() -> None:
    whole = replace(small(), classes=(), labels=torch.tensor([0, 3, 5, 3, 0, 900]))
    assert whole.class_name(900) == "class 900"
    assert count_by_class(whole) == {"class 0": 2, "class 3": 2, "class 5": 1, "class 900": 1}
    with pytest.raises(BadInput, match="image 2 of small/test is labelled -1"):
        replace(whole, labels=torch.tensor([0, 1, -1, 0, 0, 0]))


def test_images_have_pixels() -> None:
    with pytest.raises(BadInput, match=r"images of small/test are empty: 3 x 0 x 8"):
        replace(small(), pixels=torch.zeros(6, 3, 0, 8, dtype=torch.uint8))
