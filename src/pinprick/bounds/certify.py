"""Certified lower bounds: no change of at most t units fools a small convolutional network.

Branch and bound over where the changes lie (subproblems.py). A sub-problem is proved where linear
bounds keep every rival class below the label (rival_bounds.py). Otherwise it is split. Once all
sub-problems of an image are proved for t, every image with at most t changed units keeps its label.
The change at which a bound is reached is tried on the network, so t may also be refuted.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pinprick.bounds.affine_layers import AffineLayers
from pinprick.bounds.proof import Judge, Proof, status_of, wrong_claims
from pinprick.bounds.read_network import read_network
from pinprick.bounds.rival_bounds import RivalBounds
from pinprick.bounds.subproblems import (
    SubProblems,
    all_subproblems,
    most_subproblems,
    split,
)
from pinprick.bounds.tiles import make_tiles
from pinprick.errors import BadInput
from pinprick.intake import Task, check_whole, take_in
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier, Model, as_classifier
from pinprick.parts.units import Units
from pinprick.result import AttackResult
from pinprick.types import Counts, Images, Mask, PerImage
from pinprick.zoo.voting import VotingNetwork

SLACK = 1e-4  # logits by which certified images keep their label: room for float32 networks
_LARGE = 100.0  # logits above this need more room in float32, in proportion

MOST_RELUS = 8192  # most ReLUs of a network
_TILE = 16  # units of the largest tiles
_ROOM_CPU, _ROOM_GPU = 1 << 28, 1 << 34  # bytes for the matrices of a batch


@dataclass(frozen=True)
class Decision:
    """One answer of a search that goes on.

    Attributes:
        image: The index of the image.
        t: Units that may change.
        certified: Whether no change of so many units fools; otherwise one is known that does.
        nodes: Sub-problems of this image so far.
        seconds: Time since the start of the search.
    """

    image: int
    t: int
    certified: bool
    nodes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Certificate(Proof):
    """Bounds on the fewest units that fool a network, for up to ``t`` units.

    Attributes:
        nodes: Sub-problems that were bounded, per image.
        t: Most units that were tried.
    """

    nodes: Counts
    t: int

    @property
    def certified(self) -> PerImage:
        """No change of at most so many units fools; -1 where the clean image already does."""
        return self.lower - 1

    @property
    def words(self) -> tuple[str, ...]:
        """What is known about the first number of units that is not certified, per image."""
        return tuple(
            "already fooled"
            if upper == 0
            else "refuted"
            if lower == upper < torch.inf
            else "undecided"
            if lower <= self.t
            else "all certified"
            for lower, upper in zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        )


def certify(
    model: Classifier | Model,
    images: Images,
    labels: Any,
    *,
    t: int = 1,
    unit: Unit = "pixels",
    targets: Any = None,
    allowed: Any = None,
    attacked: AttackResult | None = None,
    seconds: float = 60.0,
    nodes: int = 1_000_000,
    decided: Callable[[Decision], None] | None = None,
) -> Certificate:
    """Prove for each image that no change of at most ``t`` units fools the network.

    The network is an ``nn.Sequential`` of affine layers and ReLUs, with at most 8192 ReLUs and
    images of at most 4096 elements. The work is done where the images are, in float64. Where a
    change that fools is found on the way, the answer has it. A network that votes over few pixels
    at a time is certified by its votes alone, in a pass; it can be of any kind and size.

    Args:
        model: The model.
        images: Images in [0, 1].
        labels: Their labels.
        t: Most units to try. The numbers from 1 on are tried in turn.
        unit: Whether "pixels" or "elements" are counted.
        targets: Classes to reach, one per image; an image fools only if it reaches its own. Without
            them, every other class than the label will do.
        allowed: Where values may change, as for ``run_attack``; everywhere by default.
        attacked: The result of an attack on the same images; what it found needs no search.
        seconds: Time limit for all images together. What is not proved by then is undecided.
        nodes: Most sub-problems per image and number of units.
        decided: Called for each image and number of units as soon as it is decided. Images that
            take few sub-problems come first.
    """
    start = time.monotonic()
    check_unit(unit)
    check_whole("t", t, least=1)
    check_whole("nodes", nodes, least=1)
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not seconds > 0:
        raise BadInput(f"seconds must be a number above 0, got {seconds!r}")
    classifier = as_classifier(model)
    task = take_in(images, labels, targets, allowed, None, None, None, None)
    if isinstance(classifier.net, VotingNetwork):
        from pinprick.bounds.vote_bounds import certify_votes  # which makes certificates too

        return certify_votes(classifier, classifier.net, task, t=t, unit=unit, attacked=attacked)
    search = _Search(classifier, task, unit)
    if attacked is not None:
        search.take(attacked, task)
    first = search.upper.clone()
    for changes in range(1, t + 1):
        for decision in search.run(changes, start, seconds, nodes):
            if decided is not None:
                decided(decision)
    certificate = search.certificate(t, None if attacked is None else first, start)
    wrong = list(wrong_claims(certificate.to("cpu"), search.judge))
    if wrong:
        raise RuntimeError(f"a certificate with wrong claims, which is a bug: {'; '.join(wrong)}")
    return certificate


class _Search:
    """The search of all images: what is proved so far, and what is known to fool."""

    def __init__(self, model: Classifier, task: Task, unit: Unit) -> None:
        self._images, self._goal, self._name = task.images, task.goal, model.name
        device, labels = self._images.device, task.goal.labels
        self.judge = Judge(model)
        network = read_network(model, self._images, most_relus=MOST_RELUS, reader="the certificate")
        self._layers = AffineLayers.of(network, device)
        for what, classes in (("labels", labels), ("targets", task.goal.targets)):
            if classes is not None and len(classes):
                low, high = int(classes.min()), int(classes.max())
                if not 0 <= low <= high < self._layers.classes:
                    raise BadInput(
                        f"{model.name} has {self._layers.classes} classes, got {what} from "
                        f"{low} to {high}"
                    )
        self._units = Units(unit)
        everywhere = torch.ones_like(self._images, dtype=torch.bool)
        may_change = everywhere if task.allowed is None else task.allowed
        channels, height, width = self._images.shape[1:]
        planes = channels if unit == "elements" else 1
        self._channels = channels // planes
        self._tiles = make_tiles((planes, height, width), _TILE, device)
        free = self._units.largest(may_change)
        self._free, self._free_units = self._tiles.free(free), free.sum(dim=1)
        self._bounds = RivalBounds(self._layers, self._tiles, self._images, self._goal, may_change)
        logits = self._layers.logits(self._images)
        self._margin = self._goal.margin(logits)
        self._slack = SLACK * (logits.abs().amax(dim=1) / _LARGE).clamp(min=1)
        fooled = self.judge.fools(self._images.cpu(), self._goal.to("cpu")).to(device)
        self.lower = torch.where(self._goal.met(logits) | fooled, 0.0, 1.0).double()
        self.upper = torch.full_like(self.lower, torch.inf).masked_fill(fooled, 0.0)
        self._best = self._images.clone()
        self._nodes = torch.zeros_like(labels)

    def take(self, attacked: AttackResult, task: Task) -> None:
        """Take what an attack found as upper bounds, where the network agrees."""
        before, adv = (each.to(self._images) for each in (attacked.images, attacked.adversarial))
        if before.shape != self._images.shape or not before.equal(self._images):
            raise BadInput("the result of the attack is of other images")
        if task.allowed is not None and bool(((adv != before) & ~task.allowed).any()):
            raise BadInput("the attack changed values where allowed is False; give its mask")
        self._offer(torch.arange(len(adv), device=adv.device), adv)

    def _offer(self, rows: Tensor, adv: Images) -> None:
        """Keep images that fool with fewer units than what is known, at most one per image."""
        counts = self._units.changed(adv, self._images[rows]).sum(dim=1).double()
        fewer = counts < self.upper[rows]
        rows, adv, counts = rows[fewer], adv[fewer], counts[fewer]
        total = max(1, len(rows))
        key = counts.long() * total + torch.arange(len(rows), device=rows.device)
        none = torch.iinfo(torch.long).max
        best = torch.full_like(self._nodes, none).scatter_reduce(0, rows, key, "amin")
        best = best[best < none] % total
        rows, adv, counts = rows[best], adv[best], counts[best]
        if len(rows):
            fools = self.judge.fools(adv.cpu(), self._goal[rows].to("cpu")).to(rows.device)
            self.upper[rows[fools]], self._best[rows[fools]] = counts[fools], adv[fools]

    def run(self, changes: int, start: float, seconds: float, nodes: int) -> Iterator[Decision]:
        """Try to certify so many changes, where one fewer is certified and no image fools.

        An image waits once it has taken its share of sub-problems. The shares double as soon as all
        images wait, so that easy images are decided first.
        """
        asked = (self.lower == changes) & (self.upper >= changes) & (self._margin > self._slack)
        self.lower[asked & (self._free_units < changes)] = torch.inf
        waiting = asked & (self.upper > changes) & (self._free_units >= changes)
        starts = most_subproblems(changes, self._tiles, self._free)
        queue = [row for row in self._hardest_first(waiting) if starts[row] <= nodes]
        left = set(
            ((self.lower >= changes) & (self.upper >= changes)).nonzero().squeeze(1).tolist()
        )
        unproved, seen = waiting.long(), torch.zeros_like(self._nodes)
        work: list[SubProblems] = []
        late: list[SubProblems] = []
        share = 0
        room = _ROOM_CPU if self._images.device.type == "cpu" else _ROOM_GPU
        batch_size = self._bounds.batch_size(changes, room)
        while True:
            for image, certified in self._decided(left, changes, unproved == 0):
                left.remove(image)
                taken = int(self._nodes[image]) + int(seen[image])
                yield Decision(image, changes, certified, taken, time.monotonic() - start)
            if not (queue or work or late) or time.monotonic() > start + seconds:
                break
            while queue and sum(map(len, work)) < batch_size:
                image = queue.pop()
                work.append(
                    all_subproblems(image, changes, self._tiles, self._free, self._channels)
                )
                unproved[image] = len(work[-1])
                share = max(share, 2 * len(work[-1]))
            if not work:
                work, late, share = late, [], 2 * share
            asking = (self.upper > changes) & (seen < nodes)
            batch = _take_batch(work, late, batch_size, asking, seen >= share)
            if batch is not None:
                parts = self._step(batch)
                work.append(parts)
                _count(seen, batch, 1)
                _count(unproved, batch, -1)
                _count(unproved, parts, 1)
        self._nodes += seen

    def _hardest_first(self, chosen: Mask) -> list[int]:
        """Images by the sub-problems that they took for fewer changes, then by their margin."""
        nodes, margin = self._nodes.tolist(), self._margin.tolist()
        rows: list[int] = chosen.nonzero().squeeze(1).tolist()
        return sorted(rows, key=lambda row: (-nodes[row], margin[row]))

    def _decided(self, left: set[int], changes: int, proved: Mask) -> list[tuple[int, bool]]:
        """The images that are decided now, and whether they are certified."""
        proved &= (self.lower == changes) & (self.upper > changes) & (self._margin > self._slack)
        self.lower[proved] = changes + 1.0
        certified, fooled = (self.lower > changes).tolist(), (self.upper <= changes).tolist()
        return [(row, certified[row]) for row in sorted(left) if certified[row] or fooled[row]]

    def _step(self, batch: SubProblems) -> SubProblems:
        """Bound a batch, try what is not proved as an attack, and split it."""
        bounded = self._bounds(batch)
        proved = bounded.ahead < -self._slack[bounded.problems.image]  # never where it is NaN
        rows = (~proved).nonzero().squeeze(1)
        problems = bounded.problems[rows]
        clean = self._images[problems.image]
        change = bounded.change[rows].reshape(clean.shape)
        adv = torch.where(change == 0, clean, (clean + change).to(clean.dtype).clamp(0, 1))
        fools = self._goal[problems.image].met(self._layers.logits(adv))
        self._offer(problems.image[fools], adv[fools])
        return split(problems, self._tiles, self._free, bounded.spread[rows])

    def certificate(self, t: int, first: PerImage | None, start: float) -> Certificate:
        """What is known; ``first`` are the upper bounds of an attack."""
        known = self.upper if first is None else first
        bounds = zip(known.tolist(), self.lower.tolist(), self.upper.tolist(), strict=True)
        seconds = (time.monotonic() - start) / max(1, len(self._images))
        return Certificate(
            images=self._images,
            goal=self._goal,
            lower=self.lower,
            upper=self.upper,
            status=tuple(status_of(*each) for each in bounds),
            adversarial=self._best,
            slack=self._slack.masked_fill(self.lower < 2, 0.0),
            seconds=torch.full_like(self.lower, seconds),
            unit=self._units.unit,
            model=self._name,
            nodes=self._nodes,
            t=t,
        )


def _take_batch(
    work: list[SubProblems], late: list[SubProblems], size: int, asked: Mask, wait: Mask
) -> SubProblems | None:
    """The last sub-problems of the work list, which are removed from it.

    Those of images that are not asked about are dropped; those of images that wait become late.
    """
    parts: list[SubProblems] = []
    while work and size:
        last = work.pop()
        last = last[asked[last.image]]
        later = wait[last.image]
        if bool(later.any()):
            late.append(last[later])
            last = last[~later]
        if len(last) > size:
            work.append(last[: len(last) - size])
            last = last[len(last) - size :]
        if len(last):
            parts.append(last)
            size -= len(last)
    return SubProblems.join(parts[::-1]) if parts else None


def _count(counts: Counts, problems: SubProblems, by: int) -> None:
    counts.index_add_(0, problems.image, torch.full_like(problems.image, by))
