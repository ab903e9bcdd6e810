"""Can the changes of an attack be interpreted? Attack after attack on the same model and images.

    python benchmarks/interpretation.py --model pinprick:cifar10_resnet20 --data cifar10/test[:80] \
        --store results/leaderboard --attack wifgsm --attack-here ifgsm [--least-likely] --out OUT

The images of each ``--attack`` come from the first ``--store`` that has rows of its current
revision. An attack that no store has is left out. Each ``--attack-here`` runs here. The images are
polished, if the attack counts pixels or elements, and explained with every ``--grouping``. Without
one these are connected groups; for dense attacks, whose pixels would be one such group, pixels that
are joined to 32 groups by where they lie. Of ``--data``, a subset as in a plan, the first
``--images`` that the model classifies correctly are used.

Writes ``interpretation.json``, a row for each attack and grouping with all totals, their 95 %
intervals over images, and a few numbers of every image; and prints a Markdown table.

Whether a label is decided depends on the sampling: effects of up to 8 groups are exact, and more
groups are sampled until ``--error`` or ``--max-pairs`` is reached. To compare decided labels of
attacks, give all the same sampling: with ``--pairs 64`` every effect, whatever the number of
groups, comes from exactly 64 pairs of orders. All settings are in the rows.
"""

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from case import run_parser
from explained_images import open_images, results
from shifted_places import Places, places

from pinprick import AttackResult, Classifier, NoiseSettings, describe
from pinprick.bench.cache import Cache
from pinprick.explain.explain_result import POLISH_PASSES, explain_result
from pinprick.explain.maps.class_maps import MAP_METHODS, MapMethod
from pinprick.explain.noise.changes import without_pixels
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.labels import LABELS
from pinprick.explain.noise.statistics import Estimate
from pinprick.explain.noise.totals import Totals, add_up
from pinprick.polishing import polish

GROUPINGS: tuple[Literal["connected", "pixels"], ...] = ("connected", "pixels")
COLUMNS = (
    "attack",
    "groups are",
    "fooled",
    "pixels",
    "groups",
    "decided",
    *LABELS,
    "V",
    "obscuring alone leaves",
    "leading alone reaches",
    "both reach",
    "on object (chance)",
)


def explain(
    result: AttackResult, model: Classifier, settings: NoiseSettings, method: MapMethod
) -> tuple[list[Explanation], str, list[Places]]:
    """All images, a batch at a time; the layer of the maps, and where groups lie by chance, too."""
    told: list[Explanation] = []
    where: list[Places] = []
    layer: str | None = None
    start = time.perf_counter()
    numbers = torch.arange(len(result))
    for rows in numbers.split(int(result.batch_size.max())):
        part = explain_result(
            result[rows], model, settings, polished=False, layer=layer, method=method
        )
        layer = part.true_maps.layer if part.true_maps else None
        if part.true_maps is not None and part.adversarial_maps is not None:
            maps = zip(part.true_maps.values.cpu(), part.adversarial_maps.values.cpu(), strict=True)
            pairs = zip(part.explanations, maps, strict=True)
            where += [places(one, *both, settings.top) for one, both in pairs if _fooled(one)]
        told += [without_pixels(one) for one in part.explanations]
        print(f"  explained {len(told)} in {time.perf_counter() - start:.0f} s", flush=True)
    return told, layer or "", where


def _fooled(told: Explanation) -> bool:
    return told.status == "fooled"


def place_total(where: list[Places], *, draws: int = 2000) -> dict[str, float | None]:
    """All images together, with a bootstrap interval of the share that lies as the paper says."""
    if not where:
        return {}
    counts = torch.tensor([list(vars(one).values()) for one in where], dtype=torch.double)
    generator = torch.Generator().manual_seed(0)
    drawn = counts[torch.randint(len(counts), (draws, len(counts)), generator=generator)].sum(dim=1)
    shares = drawn[:, 0] / (drawn[:, 0] + drawn[:, 1])
    known, total = shares[shares.isfinite()], dict(vars(sum(where, Places())))
    if not len(known):
        return {**total, "low": None, "high": None}
    ends = torch.tensor([0.025, 0.975], dtype=torch.double)
    low, high = known.quantile(ends).tolist()
    return {**total, "low": low, "high": high}


def row_of(
    text: str, result: AttackResult, told: list[Explanation], totals: Totals
) -> dict[str, Any]:
    fooled = [one for one in told if one.status == "fooled"]
    pixels = torch.tensor([one.changed_pixels for one in fooled], dtype=torch.double)
    elements = torch.tensor([one.changed_elements for one in fooled], dtype=torch.double)
    return {
        "attack": text,
        "fooled": result.fooling_rate,
        "attack_pixels": mean(result.l0_pixels[result.success].double()),
        "mean_pixels": mean(pixels),
        "median_pixels": float(pixels.median()) if len(pixels) else None,
        "mean_elements": mean(elements),
        "totals": totals.to_dict(),
        "images": [
            {
                "id": one.id,
                "status": one.status,
                "pixels": one.changed_pixels,
                "groups": len(one.groups),
                "labels": [group.shapley.label for group in one.groups],
                "places": [group.place.label if group.place else None for group in one.groups],
                "obscuring": one.obscuring,
                "leading": one.leading,
                "spare": one.spare_pixels,
                "settled": one.settled,
                "error": one.largest_error,
                "forwards": one.forwards,
                "backwards": one.backwards,
            }
            for one in told
        ],
    }


def mean(values: torch.Tensor) -> float | None:
    return float(values.mean()) if len(values) else None


def cells(row: dict[str, Any]) -> list[str]:
    totals = Totals.from_dict(row["totals"])
    kinds = {one.name: one.share for one in totals.kinds}
    flips = {one.name: one for one in totals.flips}
    v, p = totals.table.cramers_v, totals.table.p
    return [
        row["attack"],
        row["settings"]["grouping"],
        f"{row['fooled']:.0%}",
        "-" if row["mean_pixels"] is None else f"{row['mean_pixels']:.1f}",
        "-" if math.isnan(totals.groups.value) else f"{totals.groups.value:.1f}",
        percent(totals.decided),
        *(percent(kinds[name]) for name in LABELS),
        "-" if math.isnan(v) else f"{v:.2f} (p {p:.2g})",
        percent(flips["obscuring alone"].leaves),
        percent(flips["leading alone"].reaches),
        percent(flips["obscuring and leading"].reaches),
        f"{percent(totals.inside)} ({percent(totals.inside_chance, interval=False)})",
    ]


def percent(estimate: Estimate, *, interval: bool = True) -> str:
    if math.isnan(estimate.value):
        return "-"
    about = f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]" if interval else ""
    return f"{100 * estimate.value:.0f} %{about}"


def show(rows: list[dict[str, Any]]) -> None:
    for line in (COLUMNS, ["---"] * len(COLUMNS), *map(cells, rows)):
        print(f"| {' | '.join(line)} |")


def main() -> None:
    parser = run_parser(__doc__)
    parser.add_argument("--grouping", action="append", choices=GROUPINGS)
    parser.add_argument("--polish-all", action="store_true", help="polish dense attacks, too")
    parser.add_argument("--max-groups", type=int, default=NoiseSettings.max_groups)
    parser.add_argument("--error", type=float, default=NoiseSettings.error)
    parser.add_argument("--max-pairs", type=int, default=NoiseSettings.max_pairs)
    parser.add_argument("--pairs", type=int, help="the same sampling for all: so many pairs")
    parser.add_argument("--path-steps", type=int, default=0, help="0 leaves the path integral out")
    parser.add_argument("--map", choices=MAP_METHODS, default="gradcam")
    parser.add_argument("--block", type=int, help="images that the model is asked about at a time")
    parser.add_argument("--store", action="append", type=Path, default=[], help="of saved images")
    parser.add_argument("--attack-here", action="append", default=[], metavar="ATTACK")
    options = parser.parse_args()
    options.data = str(options.data)

    options.out.mkdir(parents=True, exist_ok=True)
    cache = Cache(device=options.device)
    model, given, about = open_images(options, cache)
    rows: list[dict[str, Any]] = []
    for text, attack, stored in results(options, cache, model, given):
        result = stored.result
        print(f"{text}: fooled {result.fooling_rate:.1%} of {len(result)}", flush=True)
        counts = options.polish_all or attack.facts().norm == "l0"
        if counts:
            start = time.perf_counter()
            shorter = polish(result, model, unit="pixels", max_forwards=POLISH_PASSES)
            print(f"  polished in {time.perf_counter() - start:.0f} s", flush=True)
        usual = GROUPINGS[0] if attack.facts().norm == "l0" else GROUPINGS[1]
        for grouping in [name for name in GROUPINGS if name in (options.grouping or [usual])]:
            settings = NoiseSettings(
                grouping=grouping,
                max_groups=options.max_groups,
                error=options.error,
                exact=NoiseSettings.exact if options.pairs is None else 0,
                least_pairs=options.pairs or min(NoiseSettings.least_pairs, options.max_pairs),
                max_pairs=options.pairs or options.max_pairs,
                path_steps=options.path_steps,
                block=options.block,
            )
            start = time.perf_counter()
            shown = shorter if counts else result
            told, layer, where = explain(shown, model, settings, options.map)
            row = row_of(text, result, told, add_up(told)) | {"places": place_total(where)}
            row |= {"revision": attack.facts().revision}
            row |= {"describe": describe(attack), "settings": asdict(settings), "layer": layer}
            row |= {"map": options.map, "attacked": {"commit": stored.commit, "on": stored.device}}
            row |= {"seconds": result.seconds, "explain_seconds": time.perf_counter() - start}
            rows.append(row)
            document = json.dumps({**about, "rows": rows}, indent=1)
            (options.out / "interpretation.json").write_text(document)
    print(f"\n{options.model}, {about['goal']}, {len(given.labels)} images\n")
    show(rows)


if __name__ == "__main__":
    main()
