"""The batches of an epoch from images in memory.

All pixels are kept on the device as 8-bit values where they fit; else they stay in the memory of
the host, and the next batch is copied while the device works on this one. Which images make up a
batch, and how each is shifted and mirrored, follows from seed, epoch and the image's own number.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.random import Streams
from pinprick.train.augment import Augment
from pinprick.types import Images, Labels

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
        """Full batches in a random order; ``seed`` is the epoch's own, ``size`` for files alone."""


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
        self.resident = fits(data.pixels, device) if resident is None else resident
        self.pixels = data.pixels.to(device) if self.resident else data.pixels
        self.labels, self.ids = data.labels.to(device), data.indices.to(device)
        first = Streams(seed, self.ids).uniform(step=0, use="mirror")
        self.mirrored = first < 0.5  # the side that an image shows in even epochs

    def __len__(self) -> int:
        return len(self.labels)

    def batches(
        self, epoch: int, seed: int, batch_size: int, size: int | None = None
    ) -> Iterator[Batch]:
        streams = Streams(seed, self.ids)
        order = streams.uniform(step=0, use="order").argsort(stable=True)
        mirrored = self.mirrored if epoch % 2 == 0 else ~self.mirrored
        parts = cut(order, batch_size)
        for rows, (pixels, places) in zip(parts, self._taken(parts), strict=True):
            rng = streams[rows]
            images = self.augment.views(pixels, places, rng, mirrored[rows])
            yield Batch(images, self.labels[rows], rng)

    def _taken(self, parts: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """For each batch, pixels on the device and the rows of them that it consists of."""
        if self.resident:
            yield from ((self.pixels, rows) for rows in parts)
            return
        at_home = [rows.cpu() for rows in parts]  # once an epoch

        def fetch(rows: Tensor) -> Tensor:
            pixels = self.pixels.index_select(0, rows)
            return pixels.pin_memory() if self.device.type == "cuda" else pixels

        with ThreadPoolExecutor(1) as helper:
            coming = helper.submit(fetch, at_home[0])
            for number, rows in enumerate(parts):
                pixels = coming.result().to(self.device, non_blocking=True)
                if number + 1 < len(parts):
                    coming = helper.submit(fetch, at_home[number + 1])
                yield pixels, torch.arange(len(rows), device=self.device)


def fits(pixels: Tensor, device: torch.device) -> bool:
    """Whether the device can hold all pixels and still train."""
    if device.type != "cuda":
        return True
    return pixels.nbytes < _SHARE * torch.cuda.mem_get_info(device)[0]


def cut(order: Tensor, batch_size: int) -> list[Tensor]:
    """Full batches; where there are fewer images than one holds, all of them."""
    batch_size = min(batch_size, len(order))
    return list(order[: len(order) // batch_size * batch_size].split(batch_size))
