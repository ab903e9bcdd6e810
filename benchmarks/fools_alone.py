"""Do polished adversarial images still fool when each is judged alone?

    python benchmarks/fools_alone.py --model pinprick:cifar10_resnet20 --data cifar10/test \
        --skip 400 --images 48 --attack pinprick,effort=fast --attack sigma_zero --out OUT

Each attack runs twice, with the guard against numerical noise and without it. Its result is
polished in pixels. Then every image that fools in its batch is judged again, alone and in batches
of several sizes. ``--model``, ``--data``, ``--images``, ``--skip`` and ``--attack`` are as in
``case.py``. Writes ``fools_alone.json`` with one row per attack and guard, and prints the rows.
"""

import json
from typing import Any

import torch
from case import open_run, read_attack, run_parser
from torch import Tensor

import pinprick.numerical_noise
from pinprick import AttackResult, Classifier, polish, run_attack
from pinprick.numerical_noise import largest_noise

SIZES = (1, 2, 3, 5, 8, 16, 32, 48, 64)
SAFETY = pinprick.numerical_noise._SAFETY


def set_guard(on: bool) -> None:
    """Without the guard the noise counts as 0, so attacks and ``polish`` get no slack."""
    pinprick.numerical_noise._SAFETY = SAFETY if on else 0


@torch.no_grad()
def logits_by_size(model: Classifier, images: Tensor, size: int) -> Tensor:
    with model.frozen():
        return torch.cat([model(part.to(model.device)).cpu() for part in images.split(size)])


def judge(result: AttackResult, model: Classifier) -> dict[str, Any]:
    """How many images fool in their batch, and how many of these do not in another one."""
    fooled = result[result.success.nonzero().squeeze(1)]
    answers = {size: logits_by_size(model, fooled.adversarial, size) for size in SIZES}
    missed = {size: ~fooled.goal.met(logits) for size, logits in answers.items()}
    margins = torch.stack([fooled.goal.margin(logits) for logits in answers.values()])
    return {
        "fooled": len(fooled),
        "not_alone": int(missed[1].sum()),
        "not_in_some_batch": int(torch.stack(list(missed.values())).any(dim=0).sum()),
        "within_noise": int(fooled.within_noise.sum()),
        "nearest_margin": margins.abs().min().item(),
        "mean_pixels": fooled.l0_pixels.double().mean().item(),
    }


def main() -> None:
    parser = run_parser(__doc__)
    options = parser.parse_args()
    model, images, labels, targets, about = open_run(options)
    rows: list[dict[str, Any]] = []
    for text in options.attack:
        for guard in (True, False):
            set_guard(guard)
            result = run_attack(
                read_attack(text),
                model,
                images,
                labels,
                targets=targets,
                batch_size=options.batch_size,
            )
            shorter = polish(result, model, unit="pixels")
            noise = largest_noise(shorter) if guard else None
            row = {"attack": text, "guard": guard, "noise": noise}
            row |= {"attacked": judge(result, model), "polished": judge(shorter, model)}
            rows.append(row)
            print(json.dumps(row), flush=True)
            document = json.dumps({**about, "sizes": SIZES, "rows": rows}, indent=1)
            (options.out / "fools_alone.json").write_text(document + "\n")


if __name__ == "__main__":
    main()
