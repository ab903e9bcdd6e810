"""Clauses that one watched run can answer.

A clause gives one sentence per breach, and none where the contract is kept.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from pinprick.attacks.build import build, describe
from pinprick.attacks.card import Attack
from pinprick.attacks.own_class import flaws
from pinprick.contract.watched_run import IDS, WatchedRun, referees_passes
from pinprick.errors import PinprickError
from pinprick.result import AttackResult


def unsound(attack: Attack, result: AttackResult, images: Tensor) -> Iterator[str]:
    """What is wrong with a result, however the attack went."""
    adv, facts = result.adversarial, attack.facts()
    if (adv.shape, adv.dtype, adv.device) != (images.shape, images.dtype, images.device):
        yield f"It returned {adv.dtype} images of shape {tuple(adv.shape)} on {adv.device}."
        return
    if not ((adv >= 0) & (adv <= 1)).all():  # which is false of NaN, too
        yield "It returned values outside [0, 1]."
    if not torch.equal(result.images, images):
        yield "The clean images of the result are not those that were given."
    left = (adv != images).flatten(1).any(dim=1) & ~result.success
    if facts.kind == "minimal" and left.any():
        yield (
            f"A minimal attack returns the clean image where it fails; this one returned "
            f"{int(left.sum())} changed images that do not fool."
        )
    eps = getattr(attack, "eps", None)
    if facts.norm == "linf" and facts.kind == "budget" and eps is not None:
        most = result.linf.max().item() if len(result) else 0.0
        if most > eps + 2 * torch.finfo(adv.dtype).eps:
            yield f"It changed a value by {most:.4g}, but eps is {eps:.4g}."
    if not (result.l2.isfinite() & result.l1.isfinite() & result.linf.isfinite()).all():
        yield "The norms of the change are not finite."
    if not torch.equal(result.needed_elements.isinf(), ~result.success):
        yield "needed_elements is not infinite on the images that were not fooled, and only there."
    for row, remark in enumerate(result.remarks):
        if bool(remark) == bool(result.success[row]):
            yield f"Image {row} has success {bool(result.success[row])} and the remark {remark!r}."
    for passes in ("forwards", "backwards"):
        bound, spent = getattr(facts, f"max_{passes}"), getattr(result, passes)
        if bound is not None and (spent > bound).any():
            yield (
                f"It made {int(spent.max())} {passes[:-1]} passes for one image, but its card "
                f"says at most {bound}."
            )


def differences(first: AttackResult, second: AttackResult) -> Iterator[str]:
    """What two results that should be the same differ in."""
    for name in ("adversarial", "adversarial_logits", "forwards", "backwards", "out_of_budget"):
        if not torch.equal(getattr(first, name), getattr(second, name)):
            yield name
    if first.remarks != second.remarks:
        yield "remarks"


def card_in_order(run: WatchedRun) -> Iterator[str]:
    """The class is a frozen dataclass, and its card agrees with itself."""
    attack = run.attack
    card, facts = attack.card, attack.facts()
    for flaw in flaws(type(attack)):
        yield f"{type(attack).__name__} {flaw}."
    if (facts.name, facts.title, facts.access) != (card.name, card.title, card.access):
        yield "facts() changes name, title or access of the card; these belong to the class."
    if (facts.norm == "l0") != (facts.unit is not None):
        yield f"The card has norm {facts.norm} and unit {facts.unit}; l0 and a unit go together."
    twin = replace(cast(Any, attack))
    if attack != twin or hash(attack) != hash(twin):
        yield "Two attacks with the same settings are not equal."
    if facts.access in ("labels", "scores") and facts.max_backwards:
        yield f"The card says {facts.max_backwards} backward passes with access {facts.access}."


def goes_to_plain_data_and_back(run: WatchedRun) -> Iterator[str]:
    """``build(describe(attack))`` is the same attack, also through JSON."""
    for same in (run.attack, type(run.attack)()):
        try:
            again = build(json.loads(json.dumps(describe(same))))
        except (PinprickError, TypeError) as error:
            yield f"build(describe(attack)) fails: {error}."
            return
        if again != same:
            yield f"build(describe(attack)) gives {again}, not {same}."


def result_is_sound(run: WatchedRun) -> Iterator[str]:
    """Images are in the box, failures are clean, and passes are those of the card at most."""
    yield from unsound(run.attack, run.result, run.images)
    if run.result.ids.tolist() != list(IDS):
        yield "The images of the result are not in order."


def brings_the_goal_nearer(run: WatchedRun) -> Iterator[str]:
    """The margin or the cross-entropy falls, and something is changed."""
    yield from farther(run.result)


def farther(result: AttackResult) -> Iterator[str]:
    """What shows that a result is no nearer to its goal."""
    goal, before, after = result.goal, result.clean_logits, result.adversarial_logits
    nearer = goal.margin(after) <= goal.margin(before)
    nearer |= goal.cross_entropy(after) <= goal.cross_entropy(before)
    wrong = ~(nearer | result.success)
    what = "without a target" if goal.targets is None else "with targets"
    if wrong.any():
        yield f"{int(wrong.sum())} of {len(wrong)} images are farther from the goal, {what}."
    if not (result.l0_elements > 0).any():
        yield f"It changed nothing in {len(result)} images, {what}."


def passes_are_counted(run: WatchedRun) -> Iterator[str]:
    """The network saw the passes that the problem counted, and no others."""
    seen, result = run.net, run.result
    own = seen.forwards - referees_passes(len(IDS)) - 1
    for kind, counted, made in (
        ("forward", int(result.forwards.sum()), own),
        ("backward", int(result.backwards.sum()), seen.backwards),
    ):
        if counted != made:
            yield (
                f"It made {made} {kind} passes, of which {counted} went through the problem; "
                "ask the model through problem.logits and problem.gradient alone."
            )
    if not (result.forwards > 0).any():
        yield "It never asked the model."
    if run.attack.facts().access in ("labels", "scores") and seen.backwards:
        yield f"It used gradients, but its card says access {run.attack.facts().access}."


def leaves_everything_alone(run: WatchedRun) -> Iterator[str]:
    """Network, global random state, settings of torch, images and labels stay the same."""
    for part in ("network", "process"):
        before, after = getattr(run.before, part), getattr(run.after, part)
        for key in before:
            if before[key] != after[key]:
                yield f"It changed the {part}: {key}."
    for name in ("images", "labels"):
        if not torch.equal(getattr(run.before, name), getattr(run.after, name)):
            yield f"It changed the {name} that it was given, in place; clone them first."
    if run.images.requires_grad or run.images.grad is not None:
        yield "It switched on gradients for the images that it was given."
    shared = {tensor.untyped_storage().data_ptr() for tensor in (run.images, run.labels)}
    if run.result.adversarial.untyped_storage().data_ptr() in shared:
        yield "The adversarial images share their memory with the images that were given."


ONE_RUN = (
    card_in_order,
    goes_to_plain_data_and_back,
    result_is_sound,
    brings_the_goal_nearer,
    passes_are_counted,
    leaves_everything_alone,
)
