"""Targets, masks and access: an attack keeps to what it is given, or refuses it."""

import pytest
import torch
from torch import Tensor, nn

from contract.baseline import Baseline, assert_same, assert_sound, victim
from contract.victims import SHAPE, network
from pinprick import BadInput, Classifier, least_likely
from pinprick.oracle import exact_images

pytestmark = pytest.mark.plain


def test_heads_for_targets_or_refuses_them(base: Baseline) -> None:
    targets = least_likely(base.result.clean_logits, base.labels)
    if not base.attack.facts().targeted:
        with pytest.raises(BadInput, match=f"{base.attack.card.name} has no targeted form"):
            base.rerun(targets=targets)
        return
    result = base.rerun(targets=targets)
    assert_sound(base.attack, result, base.images)
    assert torch.equal(result.success, result.adversarial_logits.argmax(dim=1) == targets)
    goal, before, after = result.goal, result.clean_logits, result.adversarial_logits
    nearer = goal.margin(after) <= goal.margin(before)
    nearer |= goal.cross_entropy(after) <= goal.cross_entropy(before)
    assert (nearer | result.success).all()
    assert (result.l0_elements > 0).any()


def test_keeps_to_the_mask_or_refuses_it(base: Baseline) -> None:
    allowed = exact_images(len(base.images), SHAPE, seed=9) > 0.5
    allowed[2] = False
    if not base.attack.facts().masked:
        with pytest.raises(BadInput, match=f"{base.attack.card.name} cannot keep to a mask"):
            base.rerun(allowed=allowed)
        return
    result = base.rerun(allowed=allowed)
    assert_sound(base.attack, result, base.images)
    assert not ((result.adversarial != base.images) & ~allowed).any()
    assert (result.l0_elements > 0).any()
    assert result.forwards[2] == 0
    assert result.remarks[2] == "nothing may change: allowed is False everywhere"


def test_asks_no_more_of_the_model_than_its_card_says(base: Baseline) -> None:
    facts, name = base.attack.facts(), base.attack.card.name
    scores = Classifier(network(victim()), access="scores", name="black box")
    if facts.least_access == "scores":
        given = base.rerun(model=scores)
        assert_sound(base.attack, given, base.images)
        assert (given.forwards > 0).any()
        assert (given.backwards == 0).all()
        return
    if facts.access in ("gradients", "network"):
        with pytest.raises(BadInput, match=f"{name} needs .*, but black box gives scores alone"):
            base.rerun(model=scores)
        return
    top = Classifier(OneHot(network(victim())), access="labels", name="oracle")
    if facts.access == "scores":
        assert_same(base.rerun(model=scores), base.result)
        with pytest.raises(BadInput, match="but oracle gives labels alone"):
            base.rerun(model=top)
        return
    told = base.rerun(model=top)
    assert torch.equal(told.adversarial, base.result.adversarial)
    assert torch.equal(told.forwards, base.result.forwards)


class OneHot(nn.Module):
    """A network that gives the class, and nothing else that its logits say."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)
