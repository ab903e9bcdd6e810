"""Clauses that need further runs: another seed, other neighbours, targets, masks, limits.

A clause gives one sentence per breach, and none where the contract is kept.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pinprick.contract.networks import (
    FAULTS,
    SHAPE,
    OneHot,
    find_faults,
    guesses,
    indifferent,
    network,
    stamp,
    stubborn,
)
from pinprick.contract.one_run import differences, farther, unsound
from pinprick.contract.watched_run import IDS, WatchedRun, referees_passes
from pinprick.errors import BadInput
from pinprick.goal import least_likely
from pinprick.model import Classifier
from pinprick.oracle import exact_images
from pinprick.result import AttackResult, Failure, join
from pinprick.run import attack_batches, run_attack

FOOLED = "already fooled"  # a kind of neighbour, like the faults


def repeats(run: WatchedRun) -> Iterator[str]:
    """A second run asks the same questions and gives the same images."""
    changes: dict[str, dict[str, Any]] = {
        "a second run with the same seed, without a trace": {},
        "another layout (channels last)": {
            "images": run.images.to(memory_format=torch.channels_last)
        },
    }
    if run.attack.facts().masked:
        everywhere = torch.ones_like(run.images, dtype=torch.bool)
        changes["a mask that allows everything"] = {"allowed": everywhere}
    together = {key: value for one in changes.values() for key, value in one.items()}
    if list(_repeat(run, together)):
        for change, arguments in changes.items():
            for difference in _repeat(run, arguments):
                yield f"Another result comes from {change}: {difference} differ."


def _repeat(run: WatchedRun, arguments: dict[str, Any]) -> Iterator[str]:
    net = run.ground.watched()
    yield from differences(run.rerun(model=net, **arguments), run.result)
    if net.checksum != run.net.checksum:
        yield "the images that the model was asked about"


def seed_matters_if_the_card_says_so(run: WatchedRun) -> Iterator[str]:
    """Another seed leads to other questions if the card says random, and to the same if not."""
    net = run.ground.watched()
    run.rerun(model=net, seed=1)
    differs = net.checksum != run.net.checksum
    if differs and not run.attack.facts().random:
        yield "Another seed gives another run; write random=True on the card."
    if not differs and run.attack.facts().random:
        yield "The card says random=True, but another seed gives the same run."


def neighbours_do_not_matter(run: WatchedRun) -> Iterator[str]:
    """Order and company change nothing: one neighbour has each fault, two are fooled already."""
    kinds = [*FAULTS, FOOLED, FOOLED]
    own, others, breaches = run_among(run, kinds)
    yield from breaches
    if found := list(differences(own, run.result)):
        causes = [
            kind
            for kind in (*FAULTS, FOOLED)
            if list(differences(run_among(run, [kind])[0], run.result))
        ]
        alone = f"; one neighbour is enough: {', '.join(causes)}" if causes else ""
        yield f"An image's result depends on the batch it is in ({', '.join(found)}){alone}."
    yield from unsound(run.attack, others, others.images)
    for row, kind in enumerate(kinds):
        one = others[row]
        if kind == FOOLED:
            changed = not torch.equal(one.adversarial, one.images)
            if not one.skipped.all() or changed or one.forwards.any() or one.backwards.any():
                yield "An image that is misclassified to begin with was attacked."
        elif (
            "logits" in kind
            and find_faults(one.adversarial)[0, row]
            and one.remarks[0] != Failure.NOT_FINITE
        ):
            yield f"An image with {kind} has the remark {one.remarks[0]!r}."


def run_among(
    run: WatchedRun, neighbours: Sequence[str]
) -> tuple[AttackResult, AttackResult, list[str]]:
    """The watched images, and such neighbours, all in one shuffled run; and miscounted passes.

    The image that took most passes comes last, in a batch of its own, so that the passes that the
    network sees then are all for it.
    """
    hardest = int(run.result.forwards.argmax())
    others = run.ground.others(len(neighbours))
    labels, classes = guesses(run.ground.victim(), others), run.result.clean_logits.shape[1]
    for row, kind in enumerate(neighbours):
        if kind == FOOLED:
            labels[row] = (labels[row] + 1) % classes
        else:
            others[row] = stamp(others[row : row + 1], kind)[0]
    images, labels = torch.cat((run.images, others)), torch.cat((run.labels, labels))
    ids = torch.tensor([*IDS, *range(100, 100 + len(others))])
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    order = torch.cat((order[order != hardest], torch.tensor([hardest])))

    batches: list[AttackResult] = []
    breaches: list[str] = []
    net, last = run.ground.watched(), 0
    for batch in attack_batches(
        run.attack, net, images[order], labels[order], ids=ids[order], batch_size=len(images) - 1
    ):
        seen = net.forwards - last - referees_passes(len(batch)) - (not batches)
        if batch.forwards.sum() != seen:
            counted = int(batch.forwards.sum())
            breaches.append(f"It made {seen} forward passes in a batch that counts {counted}.")
        batches.append(batch)
        last = net.forwards
    assert [len(batch) for batch in batches] == [len(images) - 1, 1]
    result = join(batches)[order.argsort()]
    return result[: len(IDS)], result[len(IDS) :], breaches


def heads_for_targets_or_refuses_them(run: WatchedRun) -> Iterator[str]:
    """With ``targeted`` on the card the target comes nearer."""
    targets = least_likely(run.result.clean_logits, run.labels)
    if not run.attack.facts().targeted:
        yield from _not_refused(run, "has no targeted form", targets=targets)
        return
    result = run.rerun(targets=targets)
    yield from unsound(run.attack, result, run.images)
    if not torch.equal(result.success, result.adversarial_logits.argmax(dim=1) == targets):
        yield "Success is not the same as reaching the target."
    yield from farther(result)


def keeps_to_the_mask_or_refuses_it(run: WatchedRun) -> Iterator[str]:
    """With ``masked`` on the card nothing outside ``problem.allowed`` changes."""
    channels, height, width = run.images.shape[1:]
    allowed = exact_images(len(run.images), (channels, height, width), seed=9) > 0.5
    allowed[2] = False
    if not run.attack.facts().masked:
        yield from _not_refused(run, "cannot keep to a mask", allowed=allowed)
        return
    result = run.rerun(allowed=allowed)
    yield from unsound(run.attack, result, run.images)
    outside = int(((result.adversarial != run.images) & ~allowed).sum())
    if outside:
        yield f"It changed {outside} values that problem.allowed forbids."
    if not (result.l0_elements > 0).any():
        yield "It changed nothing under a mask."
    if result.forwards[2] or result.remarks[2] != Failure.NOTHING_MAY_CHANGE:
        yield "It attacked an image in which nothing may change."


def asks_no_more_than_its_card_says(run: WatchedRun) -> Iterator[str]:
    """It works with the access on its card, and a model that gives less is refused."""
    facts = run.attack.facts()
    net = network(run.ground.victim())
    scores = Classifier(net, access="scores", name="black box")
    labels = Classifier(OneHot(net), access="labels", name="oracle")
    if facts.least_access == "scores":
        given = run.rerun(model=scores)
        yield from unsound(run.attack, given, run.images)
        if not (given.forwards > 0).any() or given.backwards.any():
            yield "By scores alone it made no forward pass, or made backward passes."
    elif facts.access in ("gradients", "network"):
        yield from _not_refused(run, "but black box gives scores alone", model=scores)
    elif facts.access == "scores":
        for name in differences(run.rerun(model=scores), run.result):
            yield f"A model that gives scores alone leads to another result: {name} differ."
        yield from _not_refused(run, "but oracle gives labels alone", model=labels)
    else:
        given = run.rerun(model=labels)
        for name in ("adversarial", "forwards"):
            if not torch.equal(getattr(given, name), getattr(run.result, name)):
                yield f"A model that gives labels alone leads to another result: {name} differ."


def _not_refused(run: WatchedRun, reason: str, **changes: Any) -> Iterator[str]:
    """A breach, unless the run with these arguments is refused for this reason."""
    try:
        run.rerun(**changes)
    except BadInput as error:
        if f"{run.attack.card.name} " in str(error) and reason in str(error):
            return
    yield f"The run was not refused with the reason: {run.attack.card.name} {reason}."


def costs_what_its_card_says(run: WatchedRun) -> Iterator[str]:
    """On models that cannot be fooled it ends, within the passes of its card.

    A model that has a gradient is tried with and without targets, as the ways out of loops differ.
    An attack that was trained for one model refuses them.
    """
    attack, facts = run.attack, run.attack.facts()
    if facts.inputs is not None:
        yield from _not_refused(run, "with these weights attacks", model=_shifted(run))
        return
    images, labels = exact_images(3, SHAPE), torch.zeros(3, dtype=torch.long)
    own: dict[str, Any] = {name: getattr(facts, name) for name in ("max_forwards", "max_backwards")}
    runs = {
        "a constant model": run_attack(attack, indifferent(), images, labels),
        "a model that gives class 0 for everything": run_attack(
            attack, stubborn(), images, labels, **own
        ),
    }
    if facts.targeted:
        runs["the same model with targets"] = run_attack(
            attack, stubborn(), images, labels, targets=labels + 1
        )
    for what, result in runs.items():
        if result.success.any():
            yield f"It claims to fool {what}."
        if result.out_of_budget.any():
            yield f"On {what} it needs more passes than its card says."
        for sentence in unsound(attack, result, images):
            yield f"On {what}: {sentence}"


def _shifted(run: WatchedRun) -> Classifier:
    """The same network with one other weight."""
    net = network(run.ground.victim())
    first = next(net.parameters())
    first.data.view(-1)[0] += 1
    return Classifier(net, name="another")


def keeps_to_the_limits(run: WatchedRun) -> Iterator[str]:
    """With fewer passes it goes on with what it has, and images within the limit do not change."""
    for passes in ("forwards", "backwards"):
        spent = getattr(run.result, passes)
        if not spent.any():
            continue
        limits = {int(spent.max()) - 1}
        if passes == "forwards":
            limits |= {0, int(spent.median())}
        for limit in limits:
            what = f"With max_{passes}={limit}"
            held, over = run.rerun(**{f"max_{passes}": limit}), spent > limit
            if (getattr(held, passes) > limit).any():
                yield f"{what} it made {int(getattr(held, passes).max())}."
            if not torch.equal(held.out_of_budget, over):
                yield f"{what} other images are out of budget than those that need more."
            for name in differences(held[~over], run.result[~over]):
                yield f"{what} images that need no more have another result: {name} differ."
            for sentence in unsound(run.attack, held, run.images):
                yield f"{what}: {sentence}"
            for row in (over & ~held.success).nonzero().flatten().tolist():
                if held.remarks[row] != Failure.OUT_OF_BUDGET:
                    yield f"{what} image {row} has the remark {held.remarks[row]!r}."


FURTHER_RUNS = (
    repeats,
    seed_matters_if_the_card_says_so,
    neighbours_do_not_matter,
    heads_for_targets_or_refuses_them,
    keeps_to_the_mask_or_refuses_it,
    asks_no_more_than_its_card_says,
    costs_what_its_card_says,
    keeps_to_the_limits,
)
