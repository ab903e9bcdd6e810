"""The tables of docs/methods/wifgsm.md and wifgsm_printed.md, from the rows in results/wifgsm/.

The rows are a store of the benchmark, made by plans/wifgsm.toml, and what benchmarks/overhead.py
wrote.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pinprick import build, describe
from pinprick.bench.store import Store
from pinprick.report.docs_measured import Blocks, markdown_table

ROWS = Path(__file__).parents[2] / "results" / "wifgsm"
RESNET, EFFICIENTNET = "file:models/cifar10_resnet18", "efficientnet_lite0"
NETWORKS = {
    RESNET: "ResNet-18, CIFAR-10",
    EFFICIENTNET: "EfficientNet-Lite0, 224 px",
    "pinprick:mnist_cnn_fast_at": "MNIST CNN, Fast-AT",
    "pinprick:mnist_cnn_pgd_at": "MNIST CNN, PGD-AT",
}
SHORT = {
    RESNET: "ResNet-18",
    EFFICIENTNET: "Lite0",
    "pinprick:mnist_cnn_fast_at": "Fast-AT",
    "pinprick:mnist_cnn_pgd_at": "PGD-AT",
}
GOALS = {"untargeted": "untargeted", "least_likely": "least likely"}
PRESETS = {RESNET: "cifar10", EFFICIENTNET: "imagenet"}  # presets of the printed attack
PAPER = {"untargeted": "44", "least_likely": "69"}
TAUS = (0.49, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.0)
RADII = {"1/255": 1 / 255, "4/255": 4 / 255, "8/255": 8 / 255, "0.3": 0.3}

Spec = Mapping[str, Any]
Table = Iterator[list[str]]
TOGETHER: Spec = {
    "tau": 0.30,
    "lam": 0.01,
    "turn": False,
    "aim": "reached",
    "box": "symmetric",
    "momentum": 0.9,
}
OWN = "plans/wifgsm_departures.py:"
DEPARTURES: dict[str, Spec] = {
    "none left out": {},
    "τ found per image: 0.30 for all": {"tau": 0.30},
    "λ 0.1 of the largest force: 0.01 as printed": {"lam": 0.01},
    "gates that turn: sides of I-FGSM": {"turn": False},
    "any other class: the class that I-FGSM reached": {"aim": "reached"},
    "directed Ω: symmetric": {"box": "symmetric"},
    "momentum 0.75: 0.9 as printed": {"momentum": 0.9},
    "scale rule: the printed step": {"name": OWN + "WithoutScale"},
    "gates that act alike: sizes and sides of I-FGSM": {"name": OWN + "WithoutEqualSizes"},
    "x_w inside [0, 1]: no bound": {"name": OWN + "WithoutBound"},
    "second try: none": {"name": OWN + "WithoutSecondTry"},
    "sparsest image: the last": {"name": OWN + "WithoutSparsest"},
    "all with a setting": TOGETHER,
}
READINGS: dict[str, Spec] = {
    "Algorithm 1": {},
    "Algorithm 1, λ 0": {"lam": 0.0},
    "Eq. 20": {"reading": "eq20"},
}


@dataclass(frozen=True)
class Figures:
    """What an attack did to the images that the model gets right; infinite where it failed."""

    elements: NDArray[np.float64]
    forwards: float
    backwards: float

    @property
    def fooled(self) -> float:
        return float(np.isfinite(self.elements).mean())

    @property
    def mean(self) -> float:
        """Of the fooled images; NaN if there are none."""
        found = self.elements[np.isfinite(self.elements)]
        return float(found.mean()) if len(found) else np.nan


class Rows:
    """The figures of a store, by model, goal and attack."""

    def __init__(self, folder: Path) -> None:
        store = Store(folder / "store")
        self.overhead: list[dict[str, Any]] = json.loads((folder / "overhead.json").read_text())
        self._found: dict[tuple[str, str, str], Figures] = {}
        for key, (cell, _) in store.cells().items():
            table = store.read(key)[2].to_pydict()
            right = np.array(table["correct"])
            elements = np.array([np.inf if n is None else n for n in table["elements"]])
            self._found[cell.model, cell.goal, _text(cell.attack)] = Figures(
                elements[right],
                float(np.array(table["forwards"])[right].mean()),
                float(np.array(table["backwards"])[right].mean()),
            )

    def of(self, model: str, goal: str, spec: Spec) -> Figures:
        return self._found[model, goal, _text(describe(build(dict(spec))))]

    def has(self, model: str, goal: str, spec: Spec) -> bool:
        return (model, goal, _text(describe(build(dict(spec))))) in self._found


def _text(attack: Mapping[str, Any]) -> str:
    return json.dumps(attack, sort_keys=True)


def figures(rows: Rows) -> Table:
    yield ["network", "n", "goal", "fooled", "mean", "median", "σ-zero", "ratio"]
    for model, goal in cases():
        mine, theirs = rows.of(model, goal, ours(model)), rows.of(model, goal, SIGMA_ZERO)
        assert theirs.fooled == 1, "a ratio of means needs all images fooled"
        ratio = f"{mine.mean / theirs.mean:.2f}"
        yield [*about(model, goal, mine), *counts(mine), f"{theirs.mean:.1f}", ratio]


def departures() -> str:
    """A table per network."""
    return "\n\n".join(_departures(_rows(), model) for model in PRESETS)


def _departures(rows: Rows, model: str) -> str:
    images = len(rows.of(model, "untargeted", ours(model)).elements)
    titles = [f"{short}{word}" for word in GOALS.values() for short in ("", "mean, ", "passes, ")]
    lines = []
    for title, changes in DEPARTURES.items():
        spec = {**ours(model), **changes}
        found = [rows.of(model, goal, spec) for goal in GOALS]
        cells = [text for each in found for text in (percent(each), number(each), passes(each))]
        lines.append([title, *cells])
    table = markdown_table(["departure: what is in its place", *titles], lines)
    return f"{NETWORKS[model]}, {images} images:\n\n{table}"


def radii(rows: Rows) -> Table:
    chosen = [case for case in cases() if rows.has(*case, at_radius(case[0], 0.3))]
    yield ["ε of I-FGSM", *(f"{SHORT[model]}, {GOALS[goal]}" for model, goal in chosen)]
    turning: list[list[float]] = []
    for title, eps in RADII.items():
        found = [rows.of(*case, at_radius(case[0], eps)) for case in chosen]
        turning.append([each.mean for each in found])
        yield [title, *map(number, found)]
        fixed = ({**at_radius(model, eps), "turn": False} for model, _ in chosen)
        kept = [rows.of(*case, spec) for case, spec in zip(chosen, fixed, strict=True)]
        yield [f"{title}, sides of I-FGSM", *map(number, kept)]
    columns = zip(*turning, strict=True)
    ratios = [f"{max(means) / min(means):.2f}" for means in columns]
    yield ["most over least, gates that turn", *ratios]


def overhead(rows: Rows) -> Table:
    yield ["network", "batch", "time", "from", "to", "memory"]
    for row in rows.overhead:
        ratios = [f"{row[key]:.3f}" for key in ("time", "least", "most", "memory")]
        yield [row["network"], str(row["batch"]), *ratios]


def printed(rows: Rows) -> Table:
    titles = ("reading", "fooled", "mean", "median", "passes", "the paper")
    yield ["network", "n", "goal", *titles]
    for model, goal in ((model, goal) for model, goal in cases() if model in PRESETS):
        for title, changes in READINGS.items():
            spec = {"name": "wifgsm_printed", "preset": PRESETS[model], **changes}
            if not rows.has(model, goal, spec):
                continue
            found = {f"{title}, τ 0.30": rows.of(model, goal, spec)}
            if model == RESNET:
                grid = [{**spec, "keep": "sparsest", "tau": tau} for tau in TAUS]
                best = fewest([rows.of(model, goal, each) for each in grid])
                found[f"{title}, best τ per image"] = best
            for name, row in found.items():
                paper = PAPER[goal] if model == RESNET else ""
                yield [*about(model, goal, row), name, *counts(row), passes(row), paper]


def weights(rows: Rows) -> Table:
    yield ["λ", "fooled", "mean", "median"]
    spec = {"name": "wifgsm_printed", "preset": "cifar10", "reading": "eq20"}
    for lam in (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        found = rows.of(RESNET, "untargeted", {**spec, "lam": lam})
        yield [f"{lam:g} on the count", *counts(found)]
    for weight in (1e1, 1e2, 1e3, 1e4, 1e5):
        scaled = {**spec, "lam": 1 / weight, "loss_scale": 100 * weight}
        found = rows.of(RESNET, "untargeted", scaled)
        yield [f"{weight:g} on the cross-entropy", *counts(found)]


SIGMA_ZERO: Spec = {"name": "sigma_zero", "steps": 1000}


def cases() -> Iterator[tuple[str, str]]:
    return ((model, goal) for model in NETWORKS for goal in GOALS)


def ours(model: str) -> Spec:
    preset = {"preset": "imagenet"} if model == EFFICIENTNET else {}
    return {"name": "wifgsm", **preset}


def at_radius(model: str, eps: float) -> Spec:
    return {**ours(model), "start": {"name": "ifgsm", "eps": eps, "step_size": eps / 4}}


def fewest(of_each: list[Figures]) -> Figures:
    """The fewest elements per image, and the passes of all."""
    return Figures(
        np.min([each.elements for each in of_each], axis=0),
        sum(each.forwards for each in of_each),
        sum(each.backwards for each in of_each),
    )


def about(model: str, goal: str, found: Figures) -> list[str]:
    return [NETWORKS[model], str(len(found.elements)), GOALS[goal]]


def counts(found: Figures) -> list[str]:
    median = np.median(found.elements)
    return [percent(found), number(found), f"{median:.0f}" if np.isfinite(median) else ""]


def percent(found: Figures) -> str:
    return f"{100 * found.fooled:.4g} %"


def number(found: Figures) -> str:
    """The mean elements of fooled images, marked where not all were."""
    if not found.fooled:
        return "none"
    text = f"{found.mean:.1f}" if found.mean < 1000 else f"{found.mean:.0f}"
    return text if found.fooled == 1 else f"{text} of fooled"


def passes(found: Figures) -> str:
    return f"{found.forwards:.0f} + {found.backwards:.0f}"


def _block(table: Callable[[Rows], Table]) -> Callable[[], str]:
    def text() -> str:
        heading, *lines = table(_rows())
        return markdown_table(heading, lines)

    return text


@cache
def _rows() -> Rows:
    return Rows(ROWS)


PAGES: dict[str, Blocks] = {
    "docs/methods/wifgsm.md": {
        "figures": _block(figures),
        "departures": departures,
        "radii": _block(radii),
        "overhead": _block(overhead),
    },
    "docs/methods/wifgsm_printed.md": {
        "readings": _block(printed),
        "weights": _block(weights),
    },
}
