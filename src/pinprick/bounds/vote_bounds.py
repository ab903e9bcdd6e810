"""Certified lower bounds for a network that votes (zoo/voting.py), from its votes alone.

A changed pixel can change only the votes of draws that see it. Against a rival class c such a vote
costs the label at most

    harm(draw, c) = 2 where the draw votes for the label, 0 where it votes for c, 1 elsewhere

of its lead over c. The total of a pixel is the harm of all draws that see it. So t pixels cost at
most the sum of the t largest totals. While the lead over every rival stays at one vote or more, no
change of t pixels fools. An element lies in one pixel, so the same holds for t elements.

The bound is about the network as it is attacked, with its own fixed draws, and it is no matter of
probability. ``smoothed.py`` certifies the classifier of infinitely many draws, which is another.
"""

import copy
import time

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.bounds.certify import SLACK, Certificate
from pinprick.bounds.proof import Judge, status_of, wrong_claims
from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.intake import Task, check_classes
from pinprick.metrics.unit import Unit
from pinprick.model import Classifier
from pinprick.parts.units import Units
from pinprick.result import AttackResult
from pinprick.types import Images, PerImage
from pinprick.zoo.voting import VotingNetwork

_AT_ONCE = 64  # images whose draws are held in memory together


def certify_votes(
    model: Classifier,
    net: VotingNetwork,
    task: Task,
    *,
    t: int,
    unit: Unit,
    attacked: AttackResult | None,
) -> Certificate:
    """Bounds on the fewest units that fool the vote, for up to ``t`` units.

    The votes are those of the network in float64. A draw whose two largest logits are nearer than
    ``SLACK`` counts as lost from the start, since rounding may decide it in float32.

    Args:
        model: The model.
        net: Its network.
        task: The images, their labels, and where they may change.
        t: Most units to try; any number takes the same time.
        unit: What is counted.
        attacked: The result of an attack on the same images, for upper bounds; None for none.
    """
    start = time.monotonic()
    images, goal, units = task.images, task.goal, Units(unit)
    model = Classifier(net, mean=model.mean, std=model.std, access="network", name=model.name)
    _check_labels(model, task)
    judge = Judge(model)
    wrong = judge.fools(images.cpu(), goal.to("cpu")).to(images.device)
    adv = images if attacked is None else _adversarial(attacked, task)
    fools = judge.fools(adv.cpu(), goal.to("cpu")).to(images.device)
    upper = units.changed(adv, images).sum(dim=1).double()
    upper = upper.masked_fill(~fools, torch.inf).masked_fill(wrong, 0.0)
    certified = _certified(model, net, task, t)
    lower = torch.where(wrong, 0.0, certified + 1)
    bounds = zip(upper.tolist(), lower.tolist(), upper.tolist(), strict=True)
    seconds = (time.monotonic() - start) / max(1, len(images))
    certificate = Certificate(
        images=images,
        goal=goal,
        lower=lower,
        upper=upper,
        status=tuple(status_of(*each) for each in bounds),
        adversarial=torch.where((fools & ~wrong).view(-1, 1, 1, 1), adv, images),
        slack=torch.zeros_like(lower),
        seconds=torch.full_like(lower, seconds),
        unit=unit,
        model=model.name,
        nodes=torch.zeros_like(goal.labels),
        t=t,
    )
    claims = list(wrong_claims(certificate.to("cpu"), judge))
    if claims:
        raise RuntimeError(f"a certificate with wrong claims, which is a bug: {'; '.join(claims)}")
    return certificate


def _check_labels(model: Classifier, task: Task) -> None:
    if len(task):
        with torch.no_grad(), model.frozen():
            check_classes(task, model(task.images[:1]))


def _adversarial(attacked: AttackResult, task: Task) -> Images:
    before, adv = (each.to(task.images) for each in (attacked.images, attacked.adversarial))
    if before.shape != task.images.shape or not before.equal(task.images):
        raise BadInput("the result of the attack is of other images")
    if task.allowed is not None and bool(((adv != before) & ~task.allowed).any()):
        raise BadInput("the attack changed values where allowed is False; give its mask")
    return adv


def _certified(model: Classifier, net: VotingNetwork, task: Task, t: int) -> PerImage:
    """Per image, how many changed units up to ``t`` provably leave the vote as it is."""
    images, double = task.images, copy.deepcopy(net).double().eval()
    free = torch.ones_like(images[:, 0], dtype=torch.bool)
    if task.allowed is not None:
        free = task.allowed.any(dim=1)
    found = [torch.zeros(0, dtype=torch.float64, device=images.device)]
    for rows in torch.arange(len(images), device=images.device).split(_AT_ONCE):
        with torch.no_grad():
            logits = double.draw_logits(model.normalise(images[rows].double()))
        found.append(votes_to_lose(logits, task.goal[rows], net.masks, free[rows].flatten(1), t))
    return torch.cat(found)


def votes_to_lose(
    logits: Tensor, goal: Goal, masks: Tensor, free: Tensor, t: int, *, slack: float = SLACK
) -> PerImage:
    """How many changed pixels up to ``t`` cannot meet the goal; infinite for any number.

    With a target, only the target is a rival, of the class that leads on the clean image.

    Args:
        logits: Of each draw, (batch, draws, classes).
        goal: The goal of each image.
        masks: Which pixels each draw sees, (draws, 1, height, width).
        free: Which pixels may change, (batch, pixels).
        t: Most pixels to try.
        slack: Draws whose two largest logits are nearer count as votes for every rival.
    """
    classes = logits.shape[2]
    top = logits.topk(min(2, classes), dim=2)
    sure = top.values[..., 0] - top.values[..., -1] > slack
    vote = top.indices[..., :1]
    number = torch.arange(classes, device=logits.device)
    leader, rivals = goal.labels, number != goal.labels.unsqueeze(1)
    if goal.targets is not None:
        rivals = number == goal.targets.unsqueeze(1)
        leader = (vote == number).sum(dim=1).masked_fill(rivals, -1).argmax(dim=1)
    gain = (vote == leader.view(-1, 1, 1)).double() - (vote == number).double()
    gain = torch.where(sure.unsqueeze(2), gain, -1.0)  # what a draw adds to the lead
    totals = torch.einsum("bdc,dp->bcp", gain + 1, masks.flatten(1).to(gain))
    totals = totals * free.unsqueeze(1)
    costs = totals.topk(min(t, totals.shape[2]), dim=2).values.cumsum(dim=2)
    leads = gain.sum(dim=1).unsqueeze(2) - F.pad(costs, (1, 0))  # after 0, 1, … changed pixels
    keeps = ((leads >= 1) | ~rivals.unsqueeze(2)).all(dim=1).cumprod(dim=1)
    count = keeps[:, 1:].sum(dim=1).double()
    everything = keeps[:, 0].bool() & (free.sum(dim=1) <= count)
    return count.masked_fill(everything, torch.inf)
