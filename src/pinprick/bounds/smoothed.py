"""Certificates by randomised ablation, each right with a given probability.

Levine, Feizi: Robustness certificates for sparse adversarial attacks by randomized ablation.
AAAI 2020.

The smoothed classifier of a network that votes (zoo/voting.py) gives the class that the base
network sees most often in a uniform random subset of ``kept`` pixels. Its probabilities are means
over all C(d, kept) subsets, so they can only be estimated. For an image:

    y  = the class of most votes over n0 draws
    p  = lower confidence limit (Clopper and Pearson, level alpha) of the probability of y,
         from n other draws
    r  = the largest number of pixels with  p - (1 - C(d - r, kept) / C(d, kept)) > 1/2

A draw misses r changed pixels with probability C(d - r, kept) / C(d, kept), so the probability of y
falls by at most the rest. Where p <= 1/2 nothing is claimed: the certificate abstains. A claim is
wrong with a probability of at most alpha, per image.

A claim is about the smoothed classifier, which has infinitely many draws. The network that votes
over a fixed set of draws approximates it. An attack on that network may need fewer pixels than r,
which contradicts nothing; ``certify`` bounds the network itself.
"""

import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.errors import BadInput, MissingExtra
from pinprick.intake import check_classes, check_whole, take_in
from pinprick.model import Classifier, Model, as_classifier
from pinprick.random import Streams
from pinprick.types import Counts, Images, Labels, PerImage
from pinprick.zoo.voting import VotingNetwork, encode

MOST_DRAWS = 10_000_000  # per image
_ROOM = 1 << 23  # elements that go through the base network at once
_ROUNDING = 1e-9  # more than the quantiles of scipy are off


@dataclass(frozen=True, eq=False)
class SmoothedCertificate(BatchRows):
    """Certified radii of the smoothed classifier, each with probability ``1 - alpha``.

    Attributes:
        labels: The right classes.
        prediction: The class that the smoothed classifier gives; -1 where it abstains.
        top: The class of most votes over the first draws, also where it abstains.
        hits: How many of ``draws`` votes were for that class.
        probability: Lower confidence limit of the probability of that class.
        radius: No change of at most so many pixels moves the prediction; -1 where it abstains.
        kept: Pixels that a draw sees.
        pixels: Pixels of an image.
        first_draws: Draws that chose the class.
        draws: Draws that bounded its probability.
        alpha: Largest probability that the claim about an image is wrong.
        seed: Seed of the draws.
        seconds: Time for all images together.
        model: Name of the model.
    """

    labels: Labels
    prediction: Labels
    top: Labels
    hits: Counts
    probability: PerImage
    radius: Counts
    kept: int
    pixels: int
    first_draws: int
    draws: int
    alpha: float
    seed: int
    seconds: float
    model: str

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        """One line: the model, how many images, on how many it abstains."""
        return (
            f"<SmoothedCertificate: {self.model or 'unnamed model'}, {len(self)} images, "
            f"abstains on {self.words.count('abstains')}, "
            f"each claim wrong with probability at most {self.alpha:g}>"
        )

    @property
    def certified(self) -> Counts:
        """No change of at most so many pixels moves the right prediction; -1 without one."""
        return torch.where(self.prediction == self.labels, self.radius, -1)

    @property
    def words(self) -> tuple[str, ...]:
        """What is known about each image."""
        rows = zip(self.prediction.tolist(), self.labels.tolist(), strict=True)
        return tuple(
            "abstains"
            if prediction < 0
            else "certified"
            if prediction == label
            else "certified as another class"
            for prediction, label in rows
        )


def certify_smoothed(
    model: Classifier | Model,
    images: Images,
    labels: Any,
    *,
    draws: int = 1000,
    first_draws: int = 100,
    alpha: float = 0.001,
    seed: int = 0,
    ids: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> SmoothedCertificate:
    """The certified radius of the smoothed classifier for each image; needs SciPy.

    Args:
        model: A model that votes over few pixels at a time, as ``train --recipe ablation`` makes.
        images: Images in [0, 1].
        labels: Their labels.
        draws: Draws that bound the probability of the chosen class.
        first_draws: Draws that choose the class.
        alpha: Largest probability that the claim about an image is wrong.
        seed: Seed of the draws, which have nothing to do with those of the model itself.
        ids: A whole number per image that its draws follow from; their positions by default.
        progress: Called with the draws that are done, and all of them.
    """
    start = time.monotonic()
    check_whole("draws", draws, least=1)
    check_whole("first_draws", first_draws, least=1)
    if draws + first_draws > MOST_DRAWS:
        raise BadInput(f"at most {MOST_DRAWS} draws per image, got {draws + first_draws}")
    if isinstance(alpha, bool) or not isinstance(alpha, float) or not 0 < alpha < 1:
        raise BadInput(f"alpha must be a number above 0 and below 1, got {alpha!r}")
    check_whole("seed", seed, least=0)
    classifier = as_classifier(model)
    net = classifier.net
    if not isinstance(net, VotingNetwork):
        raise BadInput(
            f"{classifier.name} does not vote over few pixels at a time, so it has no smoothed "
            "classifier; train one with --recipe ablation, or use certify"
        )
    task = take_in(images, labels, None, None, ids, None, None, None)
    pixels = task.images.shape[2:].numel()
    with torch.no_grad(), classifier.frozen():
        images = classifier.normalise(task.images)
        if len(task):
            check_classes(task, net(images[:1]))
        streams = Streams(seed, task.ids)
        total = first_draws + draws
        first = _count_votes(net, images, streams, range(first_draws), total, progress)
        votes = _count_votes(net, images, streams, range(first_draws, total), total, progress)
    top = first.argmax(dim=1)
    hits = votes.gather(1, top.unsqueeze(1)).squeeze(1)
    lower = torch.tensor(
        [smoothed_limit(each, draws, alpha, pixels) for each in hits.tolist()],
        dtype=torch.float64,
    )
    radius = torch.tensor(
        [radius_of(each, pixels, net.ablation.kept) for each in lower.tolist()], dtype=torch.int64
    )
    home = task.images.device
    return SmoothedCertificate(
        labels=task.goal.labels,
        prediction=torch.where(radius.to(home) < 0, -1, top),
        top=top,
        hits=hits,
        probability=lower.to(home),
        radius=radius.to(home),
        kept=net.ablation.kept,
        pixels=pixels,
        first_draws=first_draws,
        draws=draws,
        alpha=float(alpha),
        seed=seed,
        seconds=time.monotonic() - start,
        model=classifier.name,
    )


def lower_limit(hits: int, draws: int, alpha: float) -> float:
    """The one-sided lower confidence limit of a probability, after Clopper and Pearson.

    Whatever the probability is, the limit lies above it in at most a share ``alpha`` of all series
    of so many independent draws.
    """
    try:
        from scipy.stats import beta
    except ModuleNotFoundError:
        raise MissingExtra("a certificate with a probability", "scipy", "bounds") from None
    if hits == 0:
        return 0.0
    return max(0.0, float(beta.ppf(alpha, hits, draws - hits + 1)) - _ROUNDING)


def smoothed_limit(hits: int, draws: int, alpha: float, pixels: int) -> float:
    """The lower limit of a class's probability over uniform subsets, from so many of our draws.

    Ours are not quite uniform: the last chosen pixel and the next may have equal keys of 24 bits.
    """
    return max(0.0, lower_limit(hits, draws, alpha) - 2 * pixels * 2**-24)


def radius_of(probability: float, pixels: int, kept: int) -> int:
    """The most changed pixels after which the class still has more than half; -1 for none at all.

    Args:
        probability: A lower bound of the probability of the class.
        pixels: Pixels of an image, d above.
        kept: Pixels that a draw sees.
    """
    half = Fraction(1, 2)
    least = 1 + half - Fraction(probability)  # share of subsets that has to miss the change

    def loses(changed: int) -> bool:
        return missed(changed, pixels, kept) <= least

    if Fraction(probability) <= half:
        return -1
    return bisect_right(range(1, pixels + 1), False, key=loses)


def missed(changed: int, pixels: int, kept: int) -> Fraction:
    """The share of all subsets of ``kept`` pixels that hold none of the changed ones."""
    return Fraction(comb(pixels - changed, kept), comb(pixels, kept))


def _count_votes(
    net: VotingNetwork,
    images: Images,
    streams: Streams,
    steps: range,
    total: int,
    progress: Callable[[int, int], None] | None,
) -> Tensor:
    """How often each class wins over the draws of these steps, (batch, classes)."""
    batch, channels, height, width = images.shape
    rows = max(1, _ROOM // (2 * channels * height * width))  # that go through at once
    classes = len(net.base(encode(images[:1], net.masks[:1]))[0]) if batch else 1
    votes = torch.zeros(batch, classes, dtype=torch.int64, device=images.device)
    many = max(1, rows // max(1, batch))
    for begin in range(steps.start, steps.stop, many) if batch else ():
        block = range(begin, min(begin + many, steps.stop))
        for some in torch.arange(batch, device=images.device).split(rows):
            masks = torch.stack(
                [draw_pixels(streams[some], height * width, net.ablation.kept, i) for i in block],
                dim=1,
            )
            seen = masks.view(len(some), len(block), 1, height, width)
            drawn = encode(images[some].unsqueeze(1), seen)
            vote = net.base(drawn.flatten(0, 1)).argmax(dim=1).view(len(some), len(block))
            votes[some] += torch.nn.functional.one_hot(vote, classes).sum(dim=1)
        if progress is not None:
            progress(block.stop, total)
    return votes


def draw_pixels(streams: Streams, pixels: int, kept: int, step: int) -> Tensor:
    """A random subset of ``kept`` different pixels per image, as a mask, (batch, pixels)."""
    keys = streams.uniform(pixels, step=step, use="smoothed draws")
    chosen = keys.topk(kept, dim=1).indices
    return torch.zeros_like(keys, dtype=torch.bool).scatter_(1, chosen, True)
