"""The batches of an epoch: every image once, and views that depend on nothing but the image."""

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from pinprick import BadInput, Streams
from pinprick.data.dataset import Dataset
from pinprick.train.feed import Augment, Batch, MemoryFeed
from pinprick.train.picture_feed import PictureFeed, random_view

CPU = torch.device("cpu")


@pytest.fixture
def pixels() -> Tensor:
    """Forty images, each of which says its number in its first value."""
    drawn = Streams(1, torch.arange(40)).integers(256, 3, 8, 10, step=0, use="pixels")
    drawn[:, 0, 0, 0] = torch.arange(40)
    return drawn.to(torch.uint8)


def dataset(pixels: Tensor) -> Dataset:
    numbers = torch.arange(len(pixels))
    classes = tuple(str(i) for i in range(40))
    return Dataset("forty", classes, numbers, pixels, (), numbers, "forty/train")


def joined(batches: Iterable[Batch]) -> tuple[Tensor, Tensor]:
    images, labels = zip(*((batch.images, batch.labels) for batch in batches), strict=True)
    return torch.cat(images), torch.cat(labels)


def test_every_image_comes_once_with_its_label(pixels: Tensor) -> None:
    feed = MemoryFeed(dataset(pixels), Augment(), CPU, seed=0)
    images, labels = joined(feed.batches(0, 5, 8))
    assert sorted(labels.tolist()) == list(range(40))
    assert torch.equal(images, pixels[labels].float() / 255)


def test_orders_differ_between_epochs_and_come_again_with_their_seed(pixels: Tensor) -> None:
    feed = MemoryFeed(dataset(pixels), Augment(), CPU, seed=0)
    first, other, again = (joined(feed.batches(0, seed, 8))[1] for seed in (5, 6, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, torch.arange(40))


def test_batches_are_full(pixels: Tensor) -> None:
    feed = MemoryFeed(dataset(pixels), Augment(), CPU, seed=0)
    assert [len(batch.labels) for batch in feed.batches(0, 5, 12)] == [12, 12, 12]
    assert [len(batch.labels) for batch in feed.batches(0, 5, 64)] == [40]


def test_pixels_that_stay_with_the_host_give_the_same_batches(pixels: Tensor) -> None:
    augment = Augment(crop=2, flip=True, cutout=3)
    feeds = [MemoryFeed(dataset(pixels), augment, CPU, seed=0, resident=r) for r in (True, False)]
    (first, labels), (second, others) = (joined(feed.batches(1, 5, 16)) for feed in feeds)
    assert torch.equal(first, second)
    assert torch.equal(labels, others)


def test_a_crop_is_a_part_of_the_picture_with_its_border_mirrored(pixels: Tensor) -> None:
    rng = Streams(3, torch.arange(40))
    views = Augment(crop=3).views(pixels, torch.arange(40), rng, torch.zeros(40, dtype=torch.bool))
    shift = rng.integers(7, 2, step=0, use="crop").tolist()
    padded = F.pad(pixels.float() / 255, (3, 3, 3, 3), mode="reflect")
    for view, whole, (down, right) in zip(views, padded, shift, strict=True):
        assert torch.equal(view, whole[:, down : down + 8, right : right + 10])
    assert len({tuple(one) for one in shift}) > 15


def test_a_picture_shows_one_side_and_the_other_by_turns(pixels: Tensor) -> None:
    feed = MemoryFeed(dataset(pixels), Augment(flip=True), CPU, seed=0)
    sides = []
    for epoch in (0, 1, 2):
        images, labels = joined(feed.batches(epoch, epoch, 40))
        straight = (images == pixels[labels].float() / 255).flatten(1).all(dim=1)
        mirrored = (images == pixels[labels].flip(3).float() / 255).flatten(1).all(dim=1)
        assert (straight ^ mirrored).all()
        sides.append(straight[labels.argsort()])
    assert torch.equal(sides[0], ~sides[1])
    assert torch.equal(sides[0], sides[2])
    assert 5 < int(sides[0].sum()) < 35


def test_cutout_covers_one_square_inside_the_picture(pixels: Tensor) -> None:
    rng = Streams(3, torch.arange(40))
    nothing = torch.zeros(40, dtype=torch.bool)
    augment = Augment(cutout=4, cover=0.7123)
    views = augment.views(pixels, torch.arange(40), rng, nothing)
    covered = (views == 0.7123).all(dim=1)
    assert covered.flatten(1).sum(dim=1).tolist() == [16] * 40
    rows, columns = covered.any(dim=2).sum(dim=1), covered.any(dim=1).sum(dim=1)
    assert rows.tolist() == columns.tolist() == [4] * 40
    assert torch.equal(
        views[~covered[:, None].expand_as(views)],
        (pixels.float() / 255)[~covered[:, None].expand_as(views)],
    )


def test_a_view_does_not_depend_on_the_batch(pixels: Tensor) -> None:
    feed = MemoryFeed(dataset(pixels), Augment(crop=2, flip=True, cutout=3), CPU, seed=0)
    (first, labels), (second, others) = (joined(feed.batches(0, 5, size)) for size in (8, 20))
    assert torch.equal(first[labels.argsort()], second[others.argsort()])


def test_pictures_too_small_for_the_views_are_refused(pixels: Tensor) -> None:
    with pytest.raises(BadInput, match="images of 8 x 10 are too small for crop 8 and cutout 0"):
        MemoryFeed(dataset(pixels), Augment(crop=8), CPU, seed=0)


@pytest.fixture
def pictures(tmp_path: Path) -> Dataset:
    files = []
    for number in range(12):
        shade = Image.linear_gradient("L").rotate(90 * (number % 4)).resize((40 + number, 30))
        tint = Image.new("RGB", shade.size, (20 * number, 120, 255 - 20 * number))
        files.append(tmp_path / f"{number:02}.png")
        Image.composite(tint, Image.new("RGB", shade.size), shade).save(files[-1])
    numbers = torch.arange(12)
    return Dataset("dozen", ("a", "b"), numbers % 2, None, tuple(files), numbers, "dozen/train")


def test_pictures_are_cut_and_brought_to_the_size_of_the_phase(pictures: Dataset) -> None:
    feed = PictureFeed(pictures, CPU, flip=True)
    for size in (16, 24):
        batches = list(feed.batches(0, 5, 4, size))
        assert [tuple(batch.images.shape) for batch in batches] == [(4, 3, size, size)] * 3
        assert all(batch.images.min() >= 0 and batch.images.max() <= 1 for batch in batches)
    first, other, again = (joined(feed.batches(0, seed, 4, 16))[0] for seed in (5, 6, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.slow
def test_helper_processes_give_the_same_views(pictures: Dataset) -> None:
    feeds = [PictureFeed(pictures, CPU, flip=True, workers=count) for count in (0, 2)]
    (first, labels), (second, others) = (joined(feed.batches(0, 5, 4, 16)) for feed in feeds)
    assert torch.equal(first, second)
    assert torch.equal(labels, others)


def test_a_view_shows_at_least_a_quarter_of_the_picture() -> None:
    picture = Image.linear_gradient("L").convert("RGB")
    whole = random_view(picture, 16, [0.9999, 0.5, 0.0, 0.0])
    assert whole.getpixel((8, 0)) < (10, 10, 10)  # type: ignore[operator]
    assert whole.getpixel((8, 15)) > (240, 240, 240)  # type: ignore[operator]
    corner = random_view(picture, 16, [0.0, 0.5, 0.0, 0.0])
    assert (125, 125, 125) > corner.getpixel((8, 15)) > (115, 115, 115)  # type: ignore[operator]


def test_a_file_that_is_no_picture_is_named(pictures: Dataset) -> None:
    pictures.files[3].write_bytes(b"no picture")
    with pytest.raises(BadInput, match=r"03\.png"):
        list(PictureFeed(pictures, CPU, flip=False).batches(0, 5, 4, 16))
