"""Shapes, precisions, classes, goals, layouts and masks, in pairs.

Sixteen cases hold every pair of kinds. They are the rows of an orthogonal array: two numbers from
0 to 3, and three more that follow from them, of which any two take all sixteen pairs of values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from pinprick.attacks.card import Attack
from pinprick.contract.networks import guesses, row_by_row
from pinprick.contract.one_run import unsound
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.oracle import exact_images
from pinprick.run import run_attack

SHAPES = [(3, 4, 5), (1, 5, 4), (3, 3, 7), (1, 1, 1)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
MASKS = ["none", "elements", "one pixel", "none, few passes"]
CLASSES = [2, 4, 1000, 4]


@dataclass(frozen=True)
class Case:
    """Images of one kind: an index into each list above, and what has two kinds."""

    shape: int
    dtype: int
    mask: int
    classes: int
    targeted: bool
    channels_last: bool
    at_the_edges: bool

    def breaches(self, attack: Attack) -> Iterator[str]:
        """Attack such images; what is wrong with the result."""
        facts, dtype, shape = attack.facts(), DTYPES[self.dtype], SHAPES[self.shape]
        model = row_by_row(CLASSES[self.classes], shape, dtype)
        if dtype == torch.float64:  # logits of lower precision than the images
            precise = model
            model = Classifier(lambda batch: precise(batch).float())
        images = exact_images(1 if self.shape == 2 else 2, shape, dtype=dtype)
        if self.at_the_edges:
            images = (images * 2 - 0.5).clamp(0, 1)  # many values at 0 and at 1
        labels = guesses(model, images)
        options: dict[str, Any] = {}
        if self.targeted and facts.targeted:
            options["targets"] = (labels + 1) % CLASSES[self.classes]
        if MASKS[self.mask] == "none, few passes":
            options["max_forwards"] = 3
        elif MASKS[self.mask] != "none" and facts.masked:
            options["allowed"] = self._allowed(images)
        if self.channels_last:
            images = images.to(memory_format=torch.channels_last)
        what = f"On {dtype} images of shape {shape}"
        if facts.inputs is not None and facts.inputs.shape != shape:
            yield from _not_refused(attack, model, images, labels, what)
            return
        result = run_attack(attack, model, images, labels, **options)
        for sentence in unsound(attack, result, images):
            yield f"{what}: {sentence}"
        changed = result.adversarial != images
        if "allowed" in options and (changed & ~options["allowed"]).any():
            yield f"{what} it changed values that problem.allowed forbids."

    def _allowed(self, images: Tensor) -> Tensor:
        if MASKS[self.mask] == "elements":
            return exact_images(len(images), SHAPES[self.shape], seed=9) > 0.5
        place = torch.zeros(images.shape[2:], dtype=torch.bool)
        place[images.shape[2] // 2, 0] = True
        return place


def _not_refused(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor, what: str
) -> Iterator[str]:
    """A breach, unless images that the attack's weights were not trained for are refused."""
    try:
        run_attack(attack, model, images, labels)
    except BadInput:
        return
    yield f"{what}: The run was not refused, though its weights take other images."


def _times(a: int, b: int) -> int:
    """The product in the field of four elements, where addition is the exclusive or."""
    product = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
    return product ^ 0b111 if product & 0b100 else product


def _case(i: int, j: int) -> Case:
    last = i ^ _times(3, j)
    two = bool(last & 1), bool(last & 2)
    return Case(i, j, i ^ j, i ^ _times(2, j), *two, at_the_edges=two[0] != two[1])


CASES = [_case(i, j) for i, j in product(range(4), repeat=2)]
BLOCKS = [  # four blocks of four cases; each has all shapes, precisions, masks and classes
    [one for one in CASES if (one.targeted, one.channels_last) == kind]
    for kind in product((False, True), repeat=2)
]


def breaches_on(cases: Sequence[Case], attack: Attack) -> Iterator[str]:
    """What is wrong with the results on these kinds of images; an error notes its kind."""
    for one in cases:
        try:
            yield from one.breaches(attack)
        except Exception as error:
            error.add_note(f"on {DTYPES[one.dtype]} images of shape {SHAPES[one.shape]}")
            raise
