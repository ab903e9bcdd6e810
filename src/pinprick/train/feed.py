"""The batches of an epoch from images in memory, augmented.

All pixels are on the device as 8-bit values where they fit. Otherwise they stay in the memory of
the host, and the next batch is copied while the device works on this one. The images of a batch,
and how each is shifted and mirrored, follow from seed, epoch and the image's own index.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.random import Streams
from pinprick.types import Images, Labels

Pixels = UInt8[Tensor, "n channel height width"]

_SHARE = 0.5  # of the free memory of a GPU that pixels may take


@dataclass(frozen=True, eq=False)
class Batch:
    """Images of one step, on the device, with their labels and random numbers."""

    images: Images
    labels: Labels
    rng: Streams


@runtime_checkable
class Feed(Protocol):
    """Where the batches of an epoch come from."""

    def __len__(self) -> int:
        """Images in an epoch."""

    def batches(self, epoch: int, seed: int, batch_size: int, size: int | None) -> Iterator[Batch]:
        """Full batches in a random order; ``seed`` is the epoch's own, ``size`` only for files."""


@dataclass(frozen=True)
class Augment:
    """Random shifts, mirroring and cutout of the images of a batch, on the device in one gather.

    Shifts and mirroring only say where each value is read from, so they are index arithmetic on the
    8-bit pixels. On a GPU the result has its channels last, which is fastest for convolutions.
    Random numbers belong to an image, so a view does not depend on the rest of the batch.

    Attributes:
        crop: Largest shift in pixels, in each direction; the border is mirrored.
        flip: Whether images are mirrored.
        cutout: Side of the square that is covered; 0 for none.
        cover: Value that it is covered with, where pixel values run from 0 to 1.
    """

    crop: int = 0
    flip: bool = False
    cutout: int = 0
    cover: float = 0.5

    def check(self, height: int, width: int) -> None:
        """Raise ``BadInput`` where images of this size are too small."""
        least = min(height, width)
        if self.crop >= least or self.cutout > least:
            raise BadInput(
                f"images of {height} x {width} are too small for crop {self.crop} "
                f"and cutout {self.cutout}"
            )

    def views(
        self,
        pixels: Pixels,
        rows: Int[Tensor, " batch"],
        rng: Streams,
        mirrored: Bool[Tensor, " batch"],
    ) -> Images:
        """One view per row of ``pixels`` in [0, 1]; ``mirrored`` rows are flipped if ``flip``."""
        height, width = pixels.shape[2:]
        y = torch.arange(height, device=rows.device).expand(len(rows), height)
        x = torch.arange(width, device=rows.device).expand(len(rows), width)
        if self.crop:
            shift = rng.integers(2 * self.crop + 1, 2, step=0, use="crop") - self.crop
            y, x = _reflect(y + shift[:, :1], height), _reflect(x + shift[:, 1:], width)
        if self.flip:
            x = torch.where(mirrored.unsqueeze(1), width - 1 - x, x)
        taken = pixels[rows[:, None, None], :, y[:, :, None], x[:, None, :]]
        images = taken.permute(0, 3, 1, 2).float() / 255
        if images.is_cuda:
            images = images.contiguous(memory_format=torch.channels_last)
        if self.cutout:
            images = images.masked_fill(self._hole(rng, height, width), self.cover)
        return images

    def _hole(self, rng: Streams, height: int, width: int) -> Tensor:
        """Where the square is; it lies inside the image."""
        inside = []
        for side, use in ((height, "cutout y"), (width, "cutout x")):
            first = rng.integers(side - self.cutout + 1, 1, step=0, use=use)
            index = torch.arange(side, device=first.device)
            inside.append((index >= first) & (index < first + self.cutout))
        return (inside[0][:, :, None] & inside[1][:, None, :]).unsqueeze(1)


class MemoryFeed:
    """Batches of a set whose pixels are in memory."""

    def __init__(
        self,
        data: Dataset,
        augment: Augment,
        device: torch.device,
        *,
        seed: int,
        resident: bool | None = None,
    ) -> None:
        assert data.pixels is not None
        augment.check(*data.pixels.shape[2:])
        self.augment, self.device = augment, device
        self.resident = _fits(data.pixels, device) if resident is None else resident
        self.pixels = data.pixels.to(device) if self.resident else data.pixels
        self.labels, self.ids = data.labels.to(device), data.indices.to(device)
        first = Streams(seed, self.ids).uniform(step=0, use="mirror")
        self.mirrored = (
            first < 0.5
        )  # which images are mirrored in even epochs; in odd ones the others

    def __len__(self) -> int:
        return len(self.labels)

    def batches(
        self, epoch: int, seed: int, batch_size: int, size: int | None = None
    ) -> Iterator[Batch]:
        streams = Streams(seed, self.ids)
        order = streams.uniform(step=0, use="order").argsort(stable=True)
        mirrored = self.mirrored if epoch % 2 == 0 else ~self.mirrored
        parts = full_batches(order, batch_size)
        for rows, (pixels, there) in zip(parts, self._on_device(parts), strict=True):
            rng = streams[rows]
            images = self.augment.views(pixels, there, rng, mirrored[rows])
            yield Batch(images, self.labels[rows], rng)

    def _on_device(self, parts: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Per batch, pixels on the device and the rows of them that it consists of."""
        if self.resident:
            yield from ((self.pixels, rows) for rows in parts)
            return
        on_host = [rows.cpu() for rows in parts]  # once per epoch

        def fetch(rows: Tensor) -> Tensor:
            pixels = self.pixels.index_select(0, rows)
            return pixels.pin_memory() if self.device.type == "cuda" else pixels

        with ThreadPoolExecutor(1) as helper:
            coming = helper.submit(fetch, on_host[0])
            for number, rows in enumerate(parts):
                pixels = coming.result().to(self.device, non_blocking=True)
                if number + 1 < len(parts):
                    coming = helper.submit(fetch, on_host[number + 1])
                yield pixels, torch.arange(len(rows), device=self.device)


def _fits(pixels: Tensor, device: torch.device) -> bool:
    """Whether the device can hold all pixels and still train."""
    if device.type != "cuda":
        return True
    return pixels.nbytes < _SHARE * torch.cuda.mem_get_info(device)[0]


def full_batches(order: Tensor, batch_size: int) -> list[Tensor]:
    """The rows in full batches; all of them in one where they are fewer."""
    batch_size = min(batch_size, len(order))
    return list(order[: len(order) // batch_size * batch_size].split(batch_size))


def _reflect(index: Tensor, side: int) -> Tensor:
    """Indices beyond the border, mirrored at it."""
    return (side - 1) - ((side - 1) - index.abs()).abs()
