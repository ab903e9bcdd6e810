"""What one watched run of every attack shows."""

import json
from dataclasses import is_dataclass, replace

import torch

from contract.baseline import IDS, Baseline, assert_sound, referees_passes
from pinprick import ATTACKS, build, describe

# Attacks that may pass by an image with fewer changes.
NOT_BY_COUNT = ("onepixel", "sa_moo", "sparse_evo", "wifgsm_printed")


def test_the_result_is_sound(base: Baseline) -> None:
    assert_sound(base.attack, base.result, base.images)
    assert base.result.ids.tolist() == list(IDS)


def test_brings_the_goal_nearer(base: Baseline) -> None:
    goal, result = base.result.goal, base.result
    nearer = goal.margin(result.adversarial_logits) <= goal.margin(result.clean_logits)
    nearer |= goal.cross_entropy(result.adversarial_logits) <= goal.cross_entropy(
        result.clean_logits
    )
    assert (nearer | result.success).all()
    assert (result.l0_elements > 0).any()


def test_passes_are_those_that_the_network_saw(base: Baseline) -> None:
    seen, result = base.net, base.result
    assert result.forwards.sum() == seen.forwards - referees_passes(len(IDS)) - 1
    assert result.backwards.sum() == seen.backwards
    assert (result.forwards > 0).any()
    if base.attack.facts().access in ("labels", "scores"):
        assert seen.backwards == 0


def test_leaves_the_network_the_process_and_its_inputs_alone(base: Baseline) -> None:
    assert base.after.network == base.before.network
    assert base.after.process == base.before.process
    assert torch.equal(base.after.images, base.before.images)
    assert torch.equal(base.after.labels, base.before.labels)
    assert not base.images.requires_grad
    assert base.images.grad is None
    shared = {tensor.untyped_storage().data_ptr() for tensor in (base.images, base.labels)}
    assert base.result.adversarial.untyped_storage().data_ptr() not in shared


def test_the_trace_goes_down_and_ends_at_the_result(base: Baseline) -> None:
    facts, result, trace = base.attack.facts(), base.result, base.result.trace
    assert trace is not None
    owner = torch.arange(len(result)).repeat_interleave(trace.steps)
    same = owner[1:] == owner[:-1]
    assert (trace.forwards.diff()[same] >= 0).all()
    assert (trace.backwards.diff()[same] >= 0).all()
    for name in ("margin", "pixels", "elements"):
        values = getattr(trace, name)
        assert (values[1:] <= values[:-1])[same].all(), name
    assert (trace.forwards <= result.forwards[owner]).all()
    assert (trace.backwards <= result.backwards[owner]).all()
    last = int(result.forwards.max())
    margin = result.goal.margin(result.adversarial_logits).float()
    for unit, needed in (("pixels", result.needed_pixels), ("elements", result.needed_elements)):
        fewest = trace.fewest_after(last, unit)  # type: ignore[arg-type]
        assert (fewest <= needed).all()
        if facts.kind == "minimal" and facts.unit == unit and facts.name not in NOT_BY_COUNT:
            assert torch.equal(fewest.double(), needed)
    assert (trace.margin_after(last) <= margin).all()


def test_the_card_is_in_order(base: Baseline) -> None:
    attack = base.attack
    card, facts = attack.card, attack.facts()
    assert ATTACKS[card.name] is type(attack)
    assert (facts.name, facts.title, facts.access) == (card.name, card.title, card.access)
    assert (facts.norm == "l0") == (facts.unit is not None)
    assert is_dataclass(attack)
    assert not isinstance(attack, type)
    assert type(attack).__dataclass_params__.frozen
    assert hash(attack) == hash(replace(attack))
    assert attack == replace(attack)
    if facts.access in ("labels", "scores"):
        assert not facts.max_backwards


def test_survives_being_written_down(base: Baseline) -> None:
    for same in (base.attack, ATTACKS[base.attack.card.name]()):
        assert build(json.loads(json.dumps(describe(same)))) == same
