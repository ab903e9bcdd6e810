"""WI-FGSM as printed and ours: figures, what each departure brings, and sweeps of settings.

    python benchmarks/wifgsm.py --model pinprick:cifar10_resnet20 --data cifar10 --images 128 \
        --parts figures printed departures --out results/wifgsm/resnet_20_untargeted.json

Each part is a list of attacks on the same images, the first that the model gets right after
``--skip``. ``--data`` is as in ``case.py``, ``--preset`` that of both attacks, and
``--least-likely`` heads for the class that the model believes in least.

- ``figures``: ours and σ-zero with 1000 steps.
- ``printed``: the paper's attack in both readings, and without the count, at tau = 0.30 and with
  the best tau per image of a grid, all passes counted.
- ``departures``: ours without one departure at a time.
- ``eps``: ours at several radii of its dense start.
- ``lam``: the printed attack with lambda as a weight on the count (the text) and as a weight on the
  cross-entropy (the size that the paper's ablation has). Both by Equation 20 at tau = 0.30.

Every row is written as soon as it is there: the attack, its settings and revision, the share of
fooled images, and what each image needed.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from case import read_data, right_ones
from torch import Tensor

from pinprick import Attack, AttackResult, best_of, build, describe, load_model, run_attack
from pinprick.attacks import IFGSM, WIFGSM, SigmaZero, WIFGSMPrinted

TAUS = (0.49, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.0)
RADII = {"1/255": 1 / 255, "4/255": 4 / 255, "8/255": 8 / 255, "0.3": 0.3}
READINGS: dict[str, dict[str, Any]] = {
    "Algorithm 1": {"reading": "algorithm1"},
    "Algorithm 1, lambda 0": {"reading": "algorithm1", "lam": 0.0},
    "Eq. 20": {"reading": "eq20"},
}

Row = dict[str, Any]
Case = tuple[Any, Tensor, Tensor, Tensor | None]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--least-likely", action="store_true")
    parser.add_argument("--preset", choices=("mnist", "cifar10", "imagenet"), default="cifar10")
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--commit", help="of this code; by default what git says")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    model = load_model(options.model)
    if isinstance(model.net, torch.nn.Module):
        model.net.to(options.device)
    images, labels = read_data(options.data, model)
    images, labels, targets = right_ones(model, images, labels, options.skip, options.images)
    case = (model, images, labels, targets if options.least_likely else None)
    document = {
        "command": " ".join(sys.argv),
        "commit": options.commit or _commit(),
        "device": _device(options.device),
        "torch": torch.__version__,
        "model": model.name,
        "data": options.data.name,
        "skip": options.skip,
        "n": len(images),
        "goal": "least likely" if options.least_likely else "untargeted",
        "preset": options.preset,
        "rows": (rows := []),
    }
    for part in options.parts:
        for row in PARTS[part](case, options.preset):
            rows.append({"part": part} | row)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(document) + "\n")
            shown = {
                key: value for key, value in row.items() if key not in ("settings", "elements")
            }
            print(part, shown, flush=True)


def figures(case: Case, preset: str) -> Iterator[Row]:
    yield measure("ours", ours(preset), case)
    yield measure("σ-zero, 1000 steps", SigmaZero(steps=1000), case)


def printed(case: Case, preset: str) -> Iterator[Row]:
    for title, settings in READINGS.items():
        attack = build({"name": "wifgsm_printed", "preset": preset} | settings)
        yield measure(f"{title}, tau 0.30", attack, case)
        if preset == "imagenet":  # ten times as many passes
            continue
        attacks = [replace(attack, tau=tau, keep="sparsest") for tau in TAUS]  # type: ignore[call-arg]
        best = best_of({str(each): run(each, case) for each in attacks}, "elements")
        row = row_of(f"{title}, best tau per image", attacks[0], best)
        yield row | {"settings": row["settings"] | {"tau": list(TAUS)}}


def departures(case: Case, preset: str) -> Iterator[Row]:
    base, tau = ours(preset), {"tau": 0.30}
    changes: dict[str, dict[str, Any]] = {
        "none left out": {},
        "one tau, 0.30": tau,
        "lambda as printed, 0.01": {"lam": 1e-2},
        "sides of I-FGSM": {"turn": False},
        "the class that I-FGSM reached": {"aim": "reached"},
        "symmetric Omega": {"box": "symmetric"},
        "momentum as printed, 0.9": {"momentum": 0.9},
        "all of these": tau
        | {"lam": 1e-2, "turn": False, "aim": "reached", "box": "symmetric", "momentum": 0.9},
    }
    for title, settings in changes.items():
        yield measure(title, replace(base, **settings), case)


def radii(case: Case, preset: str) -> Iterator[Row]:
    for title, eps in RADII.items():
        start = IFGSM(eps=eps, step_size=eps / 4)
        yield measure(f"eps {title}", replace(ours(preset), start=start), case)
        fixed = replace(ours(preset), start=start, turn=False)
        yield measure(f"eps {title}, sides of I-FGSM", fixed, case)


def weights(case: Case, preset: str) -> Iterator[Row]:
    attack = build({"name": "wifgsm_printed", "preset": preset, "reading": "eq20"})
    assert isinstance(attack, WIFGSMPrinted)
    for lam in (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        yield measure(f"lambda {lam:g} on the count", replace(attack, lam=lam), case)
    for weight in (1e1, 1e2, 1e3, 1e4, 1e5):  # weight * CE + count, times 100 as in their code
        scaled = replace(attack, lam=1 / weight, loss_scale=100 * weight)
        yield measure(f"lambda {weight:g} on the cross-entropy", scaled, case)


PARTS = {
    "figures": figures,
    "printed": printed,
    "departures": departures,
    "eps": radii,
    "lam": weights,
}


def ours(preset: str) -> WIFGSM:
    chosen = {"preset": preset} if preset in WIFGSM.presets else {}
    attack = build({"name": "wifgsm"} | chosen)
    assert isinstance(attack, WIFGSM)
    return attack


def run(attack: Attack, case: Case) -> AttackResult:
    model, images, labels, targets = case
    return run_attack(attack, model, images, labels, targets=targets, batch_size=256)


def measure(title: str, attack: Attack, case: Case) -> Row:
    return row_of(title, attack, run(attack, case))


def row_of(title: str, attack: Attack, result: AttackResult) -> Row:
    """What is written of a result; None stands for infinity."""
    needed = result.needed_elements
    fooled, median = needed[result.success], needed.median().item()
    return {
        "title": title,
        "settings": describe(attack),
        "revision": attack.facts().revision,
        "fooled": len(fooled) / len(needed),
        "mean_of_fooled": fooled.double().mean().item() if len(fooled) else None,
        "median": median if median < math.inf else None,
        "elements": [int(each) if each < math.inf else None for each in needed.tolist()],
        "forwards": result.forwards.double().mean().item(),
        "backwards": result.backwards.double().mean().item(),
        "seconds": result.seconds,
    }


def _commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


def _device(name: str) -> str:
    return torch.cuda.get_device_name() if name == "cuda" else "CPU"


if __name__ == "__main__":
    main()
