"""Shapes, precisions, classes, goals, layouts and masks, in pairs.

Sixteen cases hold every pair of kinds. They are the rows of an orthogonal array: two numbers from
0 to 3, and three more that follow from them, of which any two take all sixteen pairs of values.
"""

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor

from contract.baseline import assert_sound
from contract.specifications import SPECS
from contract.victims import guesses, row_by_row
from pinprick import Attack, Classifier, run_attack
from pinprick.oracle import exact_images

pytestmark = pytest.mark.plain

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

    def run(self, attack: Attack) -> None:
        """Attack such images, and see that the result is sound."""
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
        result = run_attack(attack, model, images, labels, **options)
        assert_sound(attack, result, images)
        if "allowed" in options:
            assert not ((result.adversarial != images) & ~options["allowed"]).any()

    def _allowed(self, images: Tensor) -> Tensor:
        if MASKS[self.mask] == "elements":
            return exact_images(len(images), SHAPES[self.shape], seed=9) > 0.5
        place = torch.zeros(images.shape[2:], dtype=torch.bool)
        place[images.shape[2] // 2, 0] = True
        return place


def times(a: int, b: int) -> int:
    """The product in the field of four elements, where addition is the exclusive or."""
    product = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
    return product ^ 0b111 if product & 0b100 else product


def case(i: int, j: int) -> Case:
    last = i ^ times(3, j)
    two = bool(last & 1), bool(last & 2)
    return Case(i, j, i ^ j, i ^ times(2, j), *two, at_the_edges=two[0] != two[1])


CASES = [case(i, j) for i, j in product(range(4), repeat=2)]
BLOCKS = [  # four blocks of four cases; each has all shapes, precisions, masks and classes
    [one for one in CASES if (one.targeted, one.channels_last) == kind]
    for kind in product((False, True), repeat=2)
]


def run_all(attack: Attack, cases: list[Case]) -> None:
    for one in cases:
        try:
            one.run(attack)
        except Exception as error:
            error.add_note(f"{one}: {SHAPES[one.shape]}, {DTYPES[one.dtype]}")
            raise


def test_runs_on_every_kind_of_image(attack: Attack, spec: str) -> None:
    """The attacks take turns with the blocks, so that they have all pairs between them."""
    run_all(attack, BLOCKS[sorted(SPECS).index(spec) % 4])


@pytest.mark.slow
def test_runs_on_every_pair_of_kinds(attack: Attack, spec: str) -> None:
    mine = sorted(SPECS).index(spec) % 4
    run_all(attack, [one for block in BLOCKS[:mine] + BLOCKS[mine + 1 :] for one in block])


def test_the_cases_hold_every_pair_of_kinds() -> None:
    names = ("shape", "dtype", "mask", "classes", "targeted", "channels_last", "at_the_edges")
    for first, second in combinations(names, 2):
        pairs = {(getattr(one, first), getattr(one, second)) for one in CASES}
        ones, others = ({getattr(one, name) for one in CASES} for name in (first, second))
        assert pairs == set(product(ones, others)), (first, second)
    for block in BLOCKS:
        for name in names[:4]:
            assert {getattr(one, name) for one in block} == {0, 1, 2, 3}, name
