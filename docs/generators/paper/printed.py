"""What the paper prints, and what tables call attacks and networks."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from generators.paper.text import DASH

RESNET18, LITE0 = "file:models/cifar10_resnet18", "efficientnet_lite0"
RESNET20 = "pinprick:cifar10_resnet20"
SPARSEST = "wifgsm_printed, sparsest"  # the sparsest image that fools, not the last one
NETWORKS_FILE = "plans/paper/networks.py:"
TITLES = {
    "cw_l0": "C&W l0",
    "onepixel, k 1": "OnePixel, 1 pixel",
    "onepixel, k 3": "OnePixel, 3 pixels",
    "sparsefool": "SparseFool",
    "greedyfool": "GreedyFool",
    "fmn": "FMN",
    "homotopy": "Homotopy",
    "sparse_rs": "Sparse-RS",
    "sa_moo": "SA-MOO",
    "egs_tssa": "EGS-TSSA",
    "brusle": "BruSLeAttack",
    "wifgsm_printed": "the paper's, as printed",
    SPARSEST: "as printed, sparsest kept",
    "wifgsm": "the paper's, our form",
    "sigma_zero": "σ-zero",
    "pinprick": "Pinprick",
    "ifgsm": "I-FGSM (dense)",
}


@cache
def published() -> Mapping[str, Any]:
    """What the paper prints."""
    return tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))


def paper_value(values: Mapping[str, Sequence[Any]], label: str, place: int) -> str:
    """The paper's figure; its own attack stands beside both forms of ours."""
    name = "wifgsm" if label.startswith("wifgsm_printed") else label
    return str(values[name][place]) if name in values else DASH
