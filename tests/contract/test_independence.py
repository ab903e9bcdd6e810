"""Each image by itself: what the others are, or how many, changes nothing."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from contract.baseline import IDS, Baseline, Watched, assert_same, assert_sound, referees_passes
from contract.victims import (
    CLASSES,
    FAULTS,
    SHAPE,
    find_faults,
    guesses,
    some_images,
    stamp,
    tied_linear,
)
from pinprick import Attack, AttackResult, attack_batches, build, run_attack
from pinprick.oracle import exact_images, exact_linear
from pinprick.random import _Source
from pinprick.result import join

pytestmark = pytest.mark.plain

FOOLED = "already fooled"


def run_among(base: Baseline, neighbours: Sequence[str]) -> tuple[AttackResult, AttackResult]:
    """The images of the baseline, and such neighbours, all in one shuffled run.

    The image that took most passes comes last, in a batch of its own, so that the passes that the
    network sees then are all for it.
    """
    hardest = int(base.result.forwards.argmax())
    others = exact_images(len(neighbours), SHAPE, seed=5)
    labels = guesses(exact_linear(CLASSES, SHAPE), others)
    for row, kind in enumerate(neighbours):
        if kind == FOOLED:
            labels[row] = (labels[row] + 1) % CLASSES
        else:
            others[row] = stamp(others[row : row + 1], kind)[0]
    images, labels = torch.cat((base.images, others)), torch.cat((base.labels, labels))
    ids = torch.tensor([*IDS, *range(100, 100 + len(others))])
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    order = torch.cat((order[order != hardest], torch.tensor([hardest])))

    batches: list[AttackResult] = []
    net, last = Watched(), 0
    size = len(images) - 1
    for batch in attack_batches(
        base.attack, net, images[order], labels[order], ids=ids[order], batch_size=size
    ):
        seen = net.forwards - last - referees_passes(len(batch)) - (not batches)
        assert batch.forwards.sum() == seen
        batches.append(batch)
        last = net.forwards
    assert [len(batch) for batch in batches] == [size, 1]
    result = join(batches)[order.argsort()]
    return result[: len(IDS)], result[len(IDS) :]


def test_neither_order_nor_company_matters(base: Baseline) -> None:
    """One neighbour has each fault, and two are fooled already."""
    kinds = [*FAULTS, FOOLED, FOOLED]
    own, others = run_among(base, kinds)
    try:
        assert_same(own, base.result)
    except AssertionError as error:
        for kind in FAULTS.keys() | {FOOLED}:
            try:
                assert_same(run_among(base, [kind])[0], base.result)
            except AssertionError:
                error.add_note(f"a neighbour is enough: {kind}")
        raise
    assert_sound(base.attack, others, others.images)
    for row, kind in enumerate(kinds):
        if kind == FOOLED:
            assert others.skipped[row]
            assert torch.equal(others.adversarial[row], others.images[row])
            assert others.forwards[row] == others.backwards[row] == 0
        elif "logits" in kind and find_faults(others.adversarial[row : row + 1])[0, row]:
            assert others.remarks[row] == "the model's logits are not finite"


def draw_coarsely(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """Give random numbers so few bits that many are tied."""
    fine, left_out = _Source.bits, 24 - bits

    def coarse(source: _Source, count: int, step: int, use: str, rows: Tensor | None) -> Tensor:
        return fine(source, count, step, use, rows) >> left_out << left_out

    monkeypatch.setattr(_Source, "bits", coarse)


def test_neither_order_nor_company_matters_where_much_is_tied(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random keys, gradients and pixel values are tied, and so is what is made of them."""
    draw_coarsely(monkeypatch, bits=3)
    shape = (3, 8, 8)
    model = tied_linear(shape)
    images = (some_images(3, shape) * 2).round() / 4 + 1 / 4
    labels = guesses(model, images)
    together = run_attack(attack, model, images, labels)
    back = torch.tensor([2, 1, 0])
    apart = run_attack(attack, model, images[back], labels[back], ids=back, batch_size=2)
    assert_same(apart[back], together)


@pytest.mark.parametrize("name", ["sparse_rs", "sa_moo"])
def test_a_batch_gives_what_one_by_one_gives_at_224_pixels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 50,176 keys of 24 bits few are tied, so they have 12 bits here."""
    draw_coarsely(monkeypatch, bits=12)
    shape = (3, 224, 224)
    model, images = exact_linear(4, shape), exact_images(2, shape)
    attack = build({"name": name, "k": "smallest", "queries": 6, "rounds": 3})
    labels = guesses(model, images)
    together = run_attack(attack, model, images, labels)
    assert_same(run_attack(attack, model, images, labels, batch_size=1), together)
