"""Pointwise against its rounds written out, and where it begins."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import Pointwise
from pinprick.attacks.pointwise import Visits
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.best import Best
from pinprick.parts.units import Units


def problem_of(model: Classifier, images: Tensor, labels: Tensor) -> Problem:
    return Problem(model, images, Goal(labels), Streams(0, torch.arange(len(images))))


@pytest.fixture
def start(linear: Classifier, images: Tensor, labels: Tensor) -> Tensor:
    """For each image another one, with another label."""
    others = [images[labels != label][0] for label in labels]
    return torch.stack(others)


def as_published(problem: Problem, model: Classifier, start: Tensor) -> tuple[Tensor, list[int]]:
    """Whole rounds in one order until one restores nothing, and the different questions of each."""
    ends, asked = [], []
    for row, (clean, adv) in enumerate(zip(problem.images, start.clone(), strict=True)):
        goal, questions = problem.goal[torch.tensor([row])], set()
        draw = problem[torch.tensor([row])].rng.uniform(
            clean.numel(), step=0, use="pointwise, order"
        )
        order = draw[0].argsort(descending=True, stable=True).tolist()
        restored = True
        while restored:
            restored = False
            for element in order:
                if adv.flatten()[element] == clean.flatten()[element]:
                    continue
                candidate = adv.clone()
                candidate.view(-1)[element] = clean.view(-1)[element]
                questions.add(tuple((candidate != clean).flatten().tolist()))
                with torch.no_grad():
                    if goal.met(model(candidate.unsqueeze(0))):
                        adv, restored = candidate, True
        ends.append(adv)
        asked.append(len(questions))
    return torch.stack(ends), asked


def test_restores_what_the_published_rounds_restore_and_asks_nothing_twice(
    linear: Classifier, images: Tensor, labels: Tensor, start: Tensor
) -> None:
    adv, asked = as_published(problem_of(linear, images, labels), linear, start)
    result = run_attack(Pointwise(), linear, images, labels, start=start)
    assert torch.equal(result.adversarial, adv)
    single = result.l0_elements == 1  # what would be the clean image is not asked about
    assert result.forwards.tolist() == [1 + one for one in (torch.tensor(asked) - single.long())]


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_no_unit_that_is_left_can_be_restored(
    curved: Classifier, images: Tensor, curved_labels: Tensor, unit: str
) -> None:
    attack = Pointwise(tries=100, unit="pixels" if unit == "pixels" else "elements")
    assert attack.facts().unit == unit
    result = run_attack(attack, curved, images, curved_labels)
    assert result.success.any()
    units = Units(attack.unit)
    for clean, adv, label in zip(images, result.adversarial, curved_labels, strict=True):
        changed = units.changed(adv[None], clean[None])[0]
        for place in changed.nonzero().flatten():
            one = torch.zeros_like(changed).index_fill(0, place, True)
            back = torch.where(units.spread(one[None], adv[None]), clean, adv[None])
            with torch.no_grad():
                assert curved(back).argmax() == label


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_comes_near_the_optimum_of_a_linear_model(unit: str) -> None:
    model = exact_linear(4, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = Pointwise(tries=200, unit="pixels" if unit == "pixels" else "elements")
    result = run_attack(attack, model, images, labels)
    if unit == "pixels":
        ratio = result.needed_pixels / fewest_pixels(model, images, Goal(labels))
    else:
        ratio = result.needed_elements / fewest_elements(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 3


def test_more_noise_finds_a_sparser_start(linear: Classifier, images: Tensor) -> None:
    few = sure_images(linear, images)
    with torch.no_grad():
        labels = linear(few).argmax(dim=1)
    problem = problem_of(linear, few, labels)
    counts = []
    for tries in (30, 300):
        begin, asked = Best(few), torch.zeros_like(labels)
        Pointwise(tries=tries)._try_noise(problem, begin, torch.arange(len(few)), asked, 2**62)
        assert (asked == tries).all()
        counts.append(begin.cost)
    assert counts[1].isfinite().all()
    assert counts[1].mean() < counts[0].nan_to_num(posinf=90).mean()


def test_the_start_that_was_given_is_asked_about_first(
    linear: Classifier, images: Tensor, labels: Tensor, start: Tensor
) -> None:
    result = run_attack(Pointwise(queries=1), linear, images, labels, start=start)
    assert torch.equal(result.adversarial, start)
    assert (result.forwards == 1).all()


def test_queries_are_never_exceeded(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    whole = run_attack(Pointwise(tries=40), linear, images, labels)
    most = int(whole.forwards.median())
    short = run_attack(Pointwise(tries=40, queries=most), linear, images, labels)
    assert short.forwards.max() == most
    early = whole.forwards <= most
    assert torch.equal(short.adversarial[early], whole.adversarial[early])
    assert (short.l0_elements >= whole.l0_elements).all()


def test_a_round_goes_on_after_the_unit_that_was_restored() -> None:
    """Of three changed elements the class needs one: each is visited once."""
    images, start = torch.zeros(1, 1, 1, 3), torch.ones(1, 1, 1, 3)

    def net(images: Tensor) -> Tensor:
        first = images.flatten(1)[:, 0]
        return torch.stack((0.5 - first, first), dim=1)

    problem = problem_of(Classifier(net), images, torch.tensor([0]))
    visits = Visits(problem, start, Units("elements"))
    steps = 0
    while not visits.finished.all():
        visits.visit(problem)
        steps += 1
    assert visits.images.flatten().tolist() == [1.0, 0.0, 0.0]
    assert steps <= 3
