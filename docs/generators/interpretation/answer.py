"""The answer of docs/results/interpretation.md in five points."""

from generators.interpretation.rows import (
    Row,
    by_case,
    connected,
    dense_and_sparse,
    interval_beside,
    kind,
    mean_over_cases,
    null_share,
    on_one_map,
    pooled_flip,
    same_sampling,
)
from generators.interpretation.text import number_range, percent, rate, share_range
from pinprick.report.docs_measured import markdown_list

LEAST_GROUPS = 50  # of a network and goal that is named as the lowest or highest


def answer() -> str:
    """The answer in five points."""
    points = (_kinds(), _alone(), _object(), _place(), _decided())
    return markdown_list(points, numbered=True)


def _kinds() -> str:
    shares = {name: [kind(row, name) for row in connected()] for name in ("obscuring", "leading")}
    return (
        f"**Both kinds exist.** Per run, {share_range(shares['obscuring'])} of the groups are "
        f"obscuring and {share_range(shares['leading'])} are leading. Which kind is more frequent "
        "depends on the network and the goal."
    )


def _alone() -> str:
    leaves, reaches, rest = (
        _flips("obscuring alone", "leaves"),
        _flips("leading alone", "reaches"),
        _flips("without leading", "reaches"),
    )
    return (
        "**One kind alone is rarely enough.** Obscuring groups alone leave the true class in "
        f"{leaves[0]} of the images. Leading groups alone reach the other class in {reaches[0]}. "
        f"Without leading groups, the rest reaches it in {rest[0]}. The means over networks and "
        f"goals are {leaves[1]}, {reaches[1]} and {rest[1]}."
    )


def _flips(family: str, what: str) -> tuple[str, str]:
    """A flip rate over all runs, and its mean over networks and goals."""

    def count(rows: list[Row]) -> tuple[int, int]:
        return pooled_flip(rows, family, what)

    return rate(*count(connected())), f"{100 * mean_over_cases(connected(), count):.0f} %"


def _object() -> str:
    rows = [row["totals"] for row in connected()]
    known = [row["inside_excess"]["low"] for row in rows if row["inside_excess"]["low"] is not None]
    above = sum(low > 0 for low in known)
    inside = share_range([row["inside"]["value"] for row in rows])
    chance = share_range([row["inside_chance"]["value"] for row in rows])
    tested = [row["inside_significant"] for row in rows]
    images = sum(one["images"] for one in tested)
    significant = round(sum(one["value"] * one["images"] for one in tested))
    return (
        f"**Changed pixels lie on the object more often than by chance in {above} of {len(rows)} "
        f"runs.** Per run, {inside} of them do, in the mean over images. By chance it is {chance}. "
        f"The excess is significant on {rate(significant, images)} of single images."
    )


def _place() -> str:
    rows = connected()
    said, against = on_one_map(rows)
    pure = sum(sum(map(sum, row["totals"]["table"]["counts"][:2])) for row in rows)
    counts = {case: on_one_map(mine) for case, mine in by_case(rows).items()}
    shares = {case: one[0] / sum(one) for case, one in counts.items() if sum(one) >= LEAST_GROUPS}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    mean = mean_over_cases(rows, lambda mine: (on_one_map(mine)[0], sum(on_one_map(mine))))
    null = null_share(rows)
    measured = sum(null_share(mine) is not None for mine in by_case(rows).values())
    by_chance = (
        "Chance is not measured."
        if null is None
        else f"By chance it is {100 * null:.0f} %, measured on {measured} of them."
    )
    return (
        f"**Of obscuring and leading groups on exactly one map, {rate(said, said + against)} lie "
        f"as the paper says.** The mean over {len(counts)} networks and goals is "
        f"{100 * mean:.0f} %. {by_chance} "
        f"Lowest: {100 * shares[low]:.0f} % ({', '.join(low)}). "
        f"Highest: {100 * shares[high]:.0f} % ({', '.join(high)}). "
        f"Only {100 * (said + against) / pure:.0f} % of these two kinds lie on exactly one map."
    )


def _decided() -> str:
    found = dense_and_sparse(same_sampling())
    beside = {case: interval_beside(dense, sparse) for case, (dense, sparse) in found.items()}
    lower = [case for case, one in beside.items() if one == "below"]
    exceptions = [
        f"{', '.join(case)}: {percent(found[case][0]['totals']['decided'])}, sparse attacks "
        f"{share_range([row['totals']['decided']['value'] for row in found[case][1]])}."
        for case in lower
    ]
    dense = [row for row, _ in found.values()]
    sparse = [row for _, rows in found.values() for row in rows]
    shares = [
        share_range([row["totals"]["decided"]["value"] for row in rows]) for rows in (dense, sparse)
    ]
    sizes = [
        number_range([row["mean_pixels"] / row["totals"]["groups"]["value"] for row in rows])
        for rows in (dense, sparse)
    ]
    regions = number_range([row["totals"]["groups"]["value"] for row in dense])
    counts = [sum(one == what for one in beside.values()) for what in ("overlaps", "above")]
    return " ".join(
        (
            f"**Labels of dense changes are decided less often on {len(lower)} of {len(found)} "
            "networks and goals.**",
            *(
                ["There the interval of I-FGSM lies below those of all sparse attacks."]
                * bool(lower)
            ),
            *exceptions,
            f"On {counts[0]} the intervals overlap, and on {counts[1]} that of I-FGSM lies above.",
            f"Per run, {shares[0]} of the labels of I-FGSM are decided, and {shares[1]} of those "
            "of sparse attacks.",
            f"A dense change counts as {regions} regions: its pixels are joined by where they lie.",
            f"So its groups have {sizes[0]} pixels in the mean, and those of sparse attacks "
            f"{sizes[1]}.",
        )
    )
