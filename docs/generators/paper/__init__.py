"""The pages of the paper measured again: docs/results/paper.md and those of its tables.

Numbers come from the rows in results/paper/, and from what the paper prints in ``published.toml``.
A cell without rows says so.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

from generators.paper import figures, sweeps, tables
from generators.paper.contradictions import contradictions
from generators.paper.rows import ROOT, Layout, Rows, layout
from generators.paper.text import NOT_MEASURED, first_of, fooling_rate, percent, short
from pinprick.bench.plan import Plan
from pinprick.own_code import import_own
from pinprick.report.docs_measured import Blocks, fill_measured, markdown_table

STORE = ROOT / "results" / "paper"
IMAGES = ROOT / "docs" / "images"
PLANS = ("table1", "table2", "table3", "table4", "ablations", "claims")
FIGURES = ("paper_q_a.png", "paper_ablations.png", "paper_robust.png")
SMALL = (
    "> A small run: other networks, four images and few passes in place of what the page says.\n\n"
)
_RUN = str(ROOT / "plans" / "paper" / "run.py")

Plans = dict[str, Layout]


@cache
def _plans() -> Plans:
    rows = Rows(STORE)
    return {name: layout(name, rows) for name in PLANS}


def small_plans(store: Path) -> Plans:
    """The same plans as ``scripts/paper --small`` runs them."""
    reduce: Callable[[Plan], Plan] = import_own(_RUN, "a plan").reduce_plan
    rows = Rows(store)
    return {name: layout(name, rows, reduce) for name in PLANS}


def blocks(plans: Callable[[], Plans]) -> dict[str, Blocks]:
    """By page, the functions that make what stands between its marks."""

    def of(name: str, make: Callable[[Layout], str]) -> Callable[[], str]:
        return lambda: make(plans()[name])

    return {
        "docs/results/paper.md": {
            "answer": lambda: answer(plans()),
            "contradictions": contradictions,
            "measured so far": lambda: coverage(plans()),
        },
        "docs/results/paper_table1.md": {
            "table 1": of("table1", tables.table1),
            "own settings": of("table1", tables.own_settings),
        },
        "docs/results/paper_table2.md": {"table 2": of("table2", tables.table2)},
        "docs/results/paper_table3.md": {
            "table 3": of("table3", tables.table3),
            "the paper's table 3": tables.paper_transfer,
        },
        "docs/results/paper_table4.md": {
            "table 4": of("table4", tables.table4),
            "the paper's speed-ups": tables.paper_speedups,
        },
        "docs/results/paper_figures.md": {
            "sweeps": of("ablations", sweeps.sweeps_table),
            "direction": of("ablations", sweeps.direction),
        },
        "docs/results/paper_claims.md": {
            "variants": of("claims", sweeps.variants_table),
            "starts": of("claims", sweeps.starts_table),
            "transfer": of("table3", sweeps.kept_transfer),
            "proved optima": sweeps.proved_optima,
            "near-optimal": lambda: sweeps.near_optimal(plans()["table1"], plans()["claims"]),
        },
    }


def answer(plans: Plans) -> str:
    """The answer in five lines."""
    return "\n".join(
        f"{number}. {line}"
        for number, line in enumerate(
            (
                _sparsity(plans["table1"]),
                _printed(plans["table1"]),
                _robust(plans["table2"]),
                _transfer(plans["table3"]),
                _time(plans["table4"]),
            ),
            start=1,
        )
    )


def _elements(plan: Layout, label: str) -> float | None:
    sample = first_of(plan.find(tables.RESNET18, "untargeted", label))
    if sample is None or not sample.fooled.any():
        return None
    return float(sample.elements[sample.fooled].mean())


def _sparsity(plan: Layout) -> str:
    paper = tables.published()["table1"]["elements"]
    words = []
    for label in ("wifgsm", "cw_l0", "fmn", "sparse_rs", "brusle", "sigma_zero", "pinprick"):
        mean = _elements(plan, label)
        if mean is not None:
            theirs = f"the paper {paper[label][0]}" if label in paper else "not in the paper"
            words.append(f"`{label}` {short(mean)} ({theirs})")
    if not words:
        return f"Sparsity: {NOT_MEASURED}."
    counts = [_fewer(plan, tables.RESNET18, 0), _fewer(plan, tables.LITE0, 1)]
    small, large = (f"{fewer} of {compared}" for fewer, compared in counts)
    return (
        f"**On CIFAR-10 {small} attacks need fewer elements here than printed, at 224 px {large}.**"
        " Counted are attacks of the paper's table that fool every image here, untargeted; at 224 "
        f"px the networks differ. Mean elements on CIFAR-10, ResNet-18: {', '.join(words)}."
    )


def _fewer(plan: Layout, model: str, place: int) -> tuple[int, int]:
    """How many attacks need fewer elements than the paper prints, and how many are compared."""
    fewer = compared = 0
    for label, printed in tables.published()["table1"]["elements"].items():
        sample = first_of(plan.find(model, "untargeted", label))
        if sample is not None and sample.fooled.all() and isinstance(printed[place], int):
            compared += 1
            fewer += bool(sample.elements.mean() < printed[place])
    return fewer, compared


def _printed(plan: Layout) -> str:
    sample = first_of(plan.find(tables.RESNET18, "untargeted", "wifgsm_printed"))
    if sample is None:
        return f"The attack as printed: {NOT_MEASURED}."
    return (
        f"**As printed, with τ 0.30 for all images, the attack fools {fooling_rate(sample)}** of "
        "these images. [Its page](../methods/wifgsm_printed.md) has other readings and τ per image."
    )


def _robust(plan: Layout) -> str:
    model, place = tables.ROBUST["CIFAR-10, ResNet-18, PGD-AT"]
    paper = tables.published()["table2"]["fooling_rate"]["wifgsm"][place]
    words = []
    for label in ("wifgsm", "sigma_zero", "pinprick"):
        sample = first_of(plan.find(model, "untargeted", label, where=figures.usual_start))
        if sample is not None:
            shares = [percent(float((sample.elements <= k).mean())) for k in (10, 24)]
            whole = percent(float(sample.fooled.mean()))
            words.append(f"`{label}` {shares[0]} and {shares[1]}, and {whole} with any number")
    if not words:
        return f"Robust models: {NOT_MEASURED}."
    return (
        "**On robust models the paper's fooling rates have no stated budget.** On CIFAR-10 under "
        f"PGD-AT it prints {paper} %. With 10 and 24 elements we measure {'; '.join(words)}."
    )


def _transfer(plan: Layout) -> str:
    sample = first_of(plan.find(tables.LITE0, "untargeted", "wifgsm"))
    known = NOT_MEASURED if sample is None else "[measured](paper_table3.md)"
    paper = tables.published()["table3"]["vgg19"]
    return (
        f"**Transfer is {known}.** From VGG-19 to ResNet-101 and ResNet-152 the paper prints "
        f"{paper['wifgsm'][2]} % and {paper['wifgsm'][3]} %. Comments of its source have "
        f"{paper['ifgsm'][2]} % and {paper['ifgsm'][3]} % for I-FGSM, its start."
    )


def _time(plan: Layout) -> str:
    sample = first_of(plan.find(tables.LITE0, "untargeted", "wifgsm"))
    known = NOT_MEASURED if sample is None else "[measured](paper_table4.md)"
    return (
        f"**Time is {known}.** The paper's speed-ups mix two ways of averaging, and two follow "
        "from neither."
    )


def coverage(plans: Plans) -> str:
    """How many cells of each plan have rows, and the command for the others."""
    rows = next(iter(plans.values())).rows
    images: Counter[str] = Counter()
    for cell, _ in rows.cells():
        images[f"{cell.model}"] += len(cell)
    lines = []
    for name, plan in plans.items():
        wanted, found = _count(plan)
        lines.append(
            [f"`plans/paper/{name}.toml`", str(wanted), str(found), f"`./scripts/paper {name}`"]
        )
    about = {(origin.device, origin.torch, origin.commit[:10]) for _, origin in rows.cells()}
    devices = ", ".join(sorted({one[0] for one in about})) or "none"
    commits = ", ".join(sorted({one[2] for one in about if one[2]})) or "unknown"
    table = markdown_table(("plan", "attacks on networks", "with rows", "measures the rest"), lines)
    count = sum(images.values())
    return f"{table}\n\nRows: {count} in `results/paper`; devices: {devices}; commits: {commits}."


def _count(plan: Layout) -> tuple[int, int]:
    """How many attacks on subsets the plan has, and how many of them have rows."""
    wanted = found = 0
    for one in plan.run.products:
        for model in one.models:
            for data in one.data:
                for attack in one.attacks:
                    for goal in one.goals:
                        wanted += len(one.seeds)
                        found += len(plan.rows.known(one, model, data, attack, goal))
    return wanted, found


def save_figures() -> None:
    """Draw the figures of the pages again."""
    _save(_plans(), IMAGES)


def write_small(store: Path, folder: Path) -> list[Path]:
    """The pages and figures of a small run, in a folder; the files that were written."""
    plans = small_plans(store)
    return [*_save(plans, folder / "images"), *write_pages(plans, folder)]


def write_pages(plans: Plans, folder: Path) -> list[Path]:
    """The pages of other rows than the repository's, in a folder."""
    written = []
    for page, made in blocks(lambda: plans).items():
        written.append(folder / Path(page).name)
        content = (ROOT / page).read_text(encoding="utf-8").replace("../images/", "images/")
        written[-1].write_text(SMALL + fill_measured(content, made), encoding="utf-8")
    return written


def _save(plans: Plans, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    drawn = (
        figures.q_a(),
        figures.ablations(plans["ablations"]),
        figures.strength(plans["table2"]),
    )
    paths = [folder / name for name in FIGURES]
    for figure, path in zip(drawn, paths, strict=True):
        figure.savefig(path)
    return paths


PAGES = blocks(_plans)
