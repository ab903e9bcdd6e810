"""Table 2: fooling rates of robust models at stated budgets."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from generators.paper.printed import SPARSEST, TITLES, paper_value, published
from generators.paper.rows import Layout, Numbers, Sample, Samples
from generators.paper.text import (
    MISSING,
    first_of,
    median,
    over_seeds,
    rate_alone,
    short,
)
from pinprick.bench.plan import Product
from pinprick.report.docs_measured import markdown_table

ROBUST = {  # of table 2
    "MNIST, PGD-AT": ("pinprick:mnist_cnn_pgd_at", 0),
    "CIFAR-10, PGD-AT": ("file:models/cifar10_resnet18_pgd_at", 1),
    "MNIST, Fast-AT": ("pinprick:mnist_cnn_fast_at", 2),
    "CIFAR-10, Fast-AT": ("file:models/cifar10_resnet18_fast_at", 3),
}
NOT_TO_BE_HAD = {"ImageNet, Fast-AT": ("file:models/imagenet_fast_at_2px", 4)}  # of table 2
BUDGETS = (10, 24, 50, 100)
SEEDS_AT = 24  # elements; the fooling rate with them is compared over seeds


HEAD = (
    *("attack", "the paper", *(f"{budget}" for budget in BUDGETS), "any", "median", "passes"),
    *(f"{SEEDS_AT} over seeds", "n"),
)
Line = tuple[str, str, Samples]  # title, the paper's rate, ours


def table2(plan: Layout) -> str:
    """One table per robust network and unit, then what is not measured."""
    parts = []
    for title, (model, place) in ROBUST.items():
        known = [line for line in _lines(plan, model, place) if line[2]]
        if not known:
            continue
        lines = [[name, printed, *_elements(samples)] for name, printed, samples in known]
        parts.append(f"### {title}\n\nIn elements:\n\n{markdown_table(HEAD, lines)}")
        samples = [_first(found) for _, _, found in known]
        if any((one.pixels != one.elements).any() for one in samples):
            rates = [
                [name, *_at_budgets(one.pixels)]
                for (name, _, _), one in zip(known, samples, strict=True)
            ]
            head = ("attack", *map(str, BUDGETS))
            parts.append(f"In pixels:\n\n{markdown_table(head, rates)}")
    return "\n\n".join((*parts, f"### Not measured\n\n{_missing(plan)}"))


def _first(samples: Samples) -> Sample:
    found = first_of(samples)
    assert found is not None
    return found


def _lines(plan: Layout, model: str, place: int) -> Iterator[Line]:
    for label, title in TITLES.items():
        if label == SPARSEST:  # of table 1 alone
            continue
        printed = paper_value(published()["table2"]["fooling_rate"], label, place)
        for radius, where in _starts(label):
            yield title + radius, printed, plan.find(model, "untargeted", label, where=where)


def _starts(label: str) -> list[tuple[str, Callable[[Product], bool]]]:
    """WI-FGSM starts from 4/255 as in other tables, and from the radius of the training."""
    if label not in ("wifgsm", "wifgsm_printed"):
        return [("", lambda one: True)]
    return [(", ε 4/255", lambda one: not _other_radius(one)), (", training's ε", _other_radius)]


def _other_radius(one: Product) -> bool:
    """Whether the attacks of a product start from the radius of the training."""
    return any(attack.card.name == "sparsefool" for attack in one.attacks)


def _elements(samples: Samples) -> list[str]:
    sample = _first(samples)
    return [
        *_at_budgets(sample.elements),
        _in_percent(sample.fooled),
        median(sample.elements),
        short(float(sample.passes.mean())),
        over_seeds(samples, within=SEEDS_AT),
        str(sample.n),
    ]


def _at_budgets(needed: Numbers) -> list[str]:
    """Fooling rates in % with at most so many units."""
    return [_in_percent(needed <= budget) for budget in BUDGETS]


def _in_percent(fooled: NDArray[np.bool_]) -> str:
    return rate_alone(int(fooled.sum()), len(fooled)).replace(" %", "")


def _missing(plan: Layout) -> str:
    """Per attack and network, the paper's fooling rate where ours is not measured."""
    places = ROBUST | NOT_TO_BE_HAD
    columns = [
        {name: (printed, bool(samples)) for name, printed, samples in _lines(plan, model, place)}
        for model, place in places.values()
    ]
    lines = []
    for name in columns[0]:
        cells = ["measured" if column[name][1] else column[name][0] for column in columns]
        if set(cells) != {"measured"}:
            lines.append([name, *cells])
    table = markdown_table(("the paper's rate, %", *places), lines)
    return f"{MISSING}\n\n{table}"
