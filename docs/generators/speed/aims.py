"""What was aimed at, and by how much it is missed: the table of results/speed/aims.md."""

from generators.speed.rows import (
    BALANCED,
    BLACK_BOX,
    FMN,
    RESNET,
    SIGMA_ZERO,
    SPARSE_PGD,
    at_several_speeds,
    cpu_ratio,
    first_over_later,
    of_run,
    over,
    overheads,
    queries_per_second,
)
from pinprick.report.docs_measured import markdown_table


def aims() -> str:
    """One line per aim: a ratio, its limit, and what the latest rows show."""
    run = of_run(BALANCED, SIGMA_ZERO)
    ours, theirs, black_box = run[BALANCED], run[SIGMA_ZERO][""], of_run(BLACK_BOX)[BLACK_BOX]
    peers = of_run(FMN, f"advlib_{FMN}")
    fmn, sparse_pgd = peers[FMN]["exact"], peers[SPARSE_PGD]["exact"]
    bare = {row["model"]: row["seconds"] / row["bare_seconds"] for row in overheads()}
    rates = {speed: queries_per_second(row) for speed, row in black_box.items()}
    per_query = {speed: rates["exact"] / rate for speed, rate in rates.items()}
    lines = [
        ("Pinprick over σ-zero 1000 of adv-lib, `exact`", 0.50, over(ours["exact"], theirs)),
        ("the same, `fast`", 0.20, over(ours["fast"], theirs)),
        ("the same, `compiled`", 0.20, over(ours["compiled"], theirs)),
        ("Pinprick over its passes alone, ResNet-18", 1.10, bare[RESNET[0]]),
        ("the same, 224 px", 1.10, bare["efficientnet_lite0"]),
        ("elements of `fast` over `exact`, largest of all runs", 1.03, _worst("fast")),
        ("the same, `compiled`", 1.03, _worst("compiled")),
        ("time per query of Sparse-RS, `fast` over `exact`", 0.40, per_query["fast"]),
        ("the same, `compiled`", 0.40, per_query["compiled"]),
        ("FMN over adv-lib's, `exact`", 1.0, over(fmn, peers[f"advlib_{FMN}"][""])),
        (
            "sparse-PGD over its authors', `exact`",
            1.0,
            over(sparse_pgd, peers[f"authors_{SPARSE_PGD}"][""]),
        ),
        ("first run of a process over later ones, `exact`", 1.5, first_over_later("exact")),
        ("CPU: Pinprick over σ-zero 1000, EfficientNet-Lite0", 0.55, cpu_ratio()),
    ]
    table = [(what, f"{aim:.2f}", f"{found:.2f}", missed(aim, found)) for what, aim, found in lines]
    return markdown_table(("ratio", "at most", "measured", "missed by"), table)


def _worst(speed: str) -> float:
    """The largest ratio of elements at this speed to those at "exact", where all are fooled."""
    ratios = (
        one[speed]["elements"] / one["exact"]["elements"]
        for one in at_several_speeds()
        if speed in one and all(row["fooled"] == row["images"] for row in one.values())
    )
    return float(max(ratios))


def missed(aim: float, found: float) -> str:
    """By how much an aim is missed, in percent."""
    return f"{100 * (found / aim - 1):.0f} %" if found > aim else "met"
