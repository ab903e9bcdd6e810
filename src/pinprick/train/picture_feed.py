"""The batches of an epoch from picture files, decoded and cropped by worker processes.

The view of a picture is a part of it of random size and shape, resized to a square, and mirrored
half of the time. Like all random numbers it follows from seed, epoch and the picture's own index.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from pinprick.data.dataset import Dataset
from pinprick.data.pictures import read_picture
from pinprick.errors import BadInput
from pinprick.random import Streams
from pinprick.train.feed import Batch, full_batches

_MIN_AREA = 0.25  # share of the picture's area that a view shows
_MAX_RATIO = 4 / 3  # of its sides
_MAX_WORKERS = 16


class PictureFeed:
    """Batches of a set whose pictures are files."""

    def __init__(
        self, data: Dataset, device: torch.device, *, flip: bool, workers: int | None = None
    ) -> None:
        self.files, self.device, self.flip = data.files, device, flip
        self.labels, self.ids = data.labels, data.indices
        if workers is None:
            on_gpu = device.type == "cuda"
            workers = min(_MAX_WORKERS, os.cpu_count() or 1) if on_gpu else 0
        self.workers = workers

    def __len__(self) -> int:
        return len(self.files)

    def batches(self, epoch: int, seed: int, batch_size: int, size: int | None) -> Iterator[Batch]:
        assert size is not None
        order = Streams(seed, self.ids).uniform(step=0, use="order").argsort(stable=True)
        parts = full_batches(order, batch_size)
        streams = Streams(seed, self.ids.to(self.device))
        loader: DataLoader[Any] = DataLoader(
            _Views(self.files, self.ids, seed, size, flip=self.flip),
            batch_sampler=[rows.tolist() for rows in parts],
            collate_fn=_collate,
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
        )
        for rows, (pixels, faults) in zip(parts, loader, strict=True):
            if faults:
                raise BadInput(faults[0])
            here = pixels.to(self.device, non_blocking=True)
            images = here.permute(0, 3, 1, 2).float() / 255
            labels = self.labels[rows].to(self.device, non_blocking=True)
            yield Batch(images, labels, streams[rows.to(self.device, non_blocking=True)])


class _Views(TorchDataset[Any]):
    """One random view per file, height x width x channel, or the reason why there is none."""

    def __init__(
        self, files: tuple[Path, ...], ids: Tensor, seed: int, size: int, *, flip: bool
    ) -> None:
        self.files, self.ids, self.seed, self.size, self.flip = files, ids, seed, size, flip

    def __getitem__(self, row: int) -> Tensor | str:
        rng = Streams(self.seed, self.ids[row : row + 1])
        draw = rng.uniform(5, step=0, use="view")[0].tolist()
        try:
            picture = read_picture(self.files[row])[0]
        except BadInput as error:
            return f"{self.files[row]}: {error}"
        view = random_view(picture, self.size, draw)
        if self.flip and draw[4] < 0.5:
            view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(view, dtype=np.uint8))


def random_view(picture: Image.Image, size: int, draw: list[float]) -> Image.Image:
    """The part of ``picture`` that four numbers in [0, 1) choose, as a square of side ``size``."""
    area = (_MIN_AREA + (1 - _MIN_AREA) * draw[0]) * picture.width * picture.height
    ratio = math.exp((2 * draw[1] - 1) * math.log(_MAX_RATIO))
    width = min(picture.width, math.sqrt(area * ratio))
    height = min(picture.height, math.sqrt(area / ratio))
    left, top = draw[2] * (picture.width - width), draw[3] * (picture.height - height)
    box = (left, top, left + width, top + height)
    return picture.resize((size, size), Image.Resampling.BILINEAR, box=box)


def _collate(views: list[Tensor | str]) -> tuple[Tensor, list[str]]:
    faults = [view for view in views if isinstance(view, str)]
    pixels = [view for view in views if isinstance(view, Tensor)]
    return (torch.empty(0) if faults else torch.stack(pixels)), faults
