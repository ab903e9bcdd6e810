"""How near the paper's attack comes to proved optima.

    python benchmarks/paper_optimum.py

Attacks the networks of ``pinprick.bounds.known_optima``, whose fewest elements are proved, and
writes results/optimum/paper.json: per case and attack, the elements that each image needs.
"""

import json
import math
from pathlib import Path
from typing import Any

from write_rows import write_rows

from pinprick import build, describe, run_attack
from pinprick.bounds.known_optima import known_names, known_optima

OUT = Path("results/optimum/paper.json")
ATTACKS: tuple[dict[str, Any], ...] = (
    {"name": "wifgsm"},
    {"name": "wifgsm_printed"},
    {"name": "wifgsm_printed", "keep": "sparsest", "tau": 0.02},
    {"name": "sigma_zero", "steps": 1000, "unit": "elements"},
    {"name": "pinprick", "effort": "thorough", "unit": "elements"},
)


def main() -> None:
    rows = []
    for name in known_names():
        if not name.endswith("/elements"):
            continue
        case = known_optima(name)
        for spec in ATTACKS:
            attack = build(spec)
            result = run_attack(
                attack, case.model, case.images, case.goal.labels, targets=case.goal.targets
            )
            needed = result.needed_elements.tolist()
            rows.append(
                {
                    "case": name,
                    "attack": describe(attack),
                    "revision": attack.facts().revision,
                    "n": len(needed),
                    "fewest": case.fewest.tolist(),
                    "needed": [one if math.isfinite(one) else None for one in needed],
                }
            )
            print(name, json.dumps(spec), flush=True)
    write_rows(OUT, rows, "cpu")


if __name__ == "__main__":
    main()
