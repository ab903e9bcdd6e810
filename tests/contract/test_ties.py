"""Each image by itself, where much is tied: what the others are changes nothing."""

import pytest
import torch
from torch import Tensor

from contract.baseline import assert_same
from pinprick import Attack, Classifier, build, run_attack
from pinprick.contract.networks import guesses, network, row_by_row, some_images
from pinprick.oracle import exact_images, exact_linear
from pinprick.random import _Source

pytestmark = pytest.mark.plain


def tied_linear(shape: tuple[int, int, int]) -> Classifier:
    """A linear model whose weights are all of one size, so that most gradients are tied."""
    model = row_by_row(shape=shape)
    weight = next(network(model).parameters())
    weight.data = weight.data.sign() / 4
    return model


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
    if attack.facts().inputs is not None:
        pytest.skip("takes no model but the one that its weights were trained for")
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
