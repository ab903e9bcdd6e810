"""What an explanation costs: seconds, passes and sampling error, one image at a time.

    python benchmarks/explanation.py [--case package.module:function] [--count 5]
        [--attack pinprick,unit=pixels] [--most 30] [--threads 2]

Attacks so many images, whose time does not count, and explains those that were fooled with at most
``--most`` changed pixels one by one: polished, three Grad-CAM maps, then the noise of each group.
Prints a line per image and the slowest, and writes the rows to ``--out``. ``--case`` is as in
``case.py``; without it, it is EfficientNet-Lite0 on the photographs of the demo.
"""

import argparse
import time
from itertools import pairwise
from pathlib import Path

import torch
from case import read_attack, read_case
from write_rows import write_rows

from pinprick import AttackResult, Classifier, polish, run_attack
from pinprick.explain.class_scores import rivals
from pinprick.explain.maps.class_maps import gradcam
from pinprick.explain.noise.explain_noise import explain_noise
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.settings import NoiseSettings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", help="package.module:function giving model, images, labels")
    parser.add_argument("--count", type=int, default=5, help="images")
    parser.add_argument("--attack", default="pinprick,effort=fast,unit=pixels")
    parser.add_argument("--most", type=int, default=30, help="changed pixels")
    parser.add_argument("--grouping", choices=("connected", "pixels"), default="connected")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results/explanation/cpu.json"))
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    model, images, labels = read_case(options.case, options.device, options.count)
    attack, settings = read_attack(options.attack), NoiseSettings(grouping=options.grouping)
    result = run_attack(attack, model, images, labels)
    few = result.success & (polish(result, model, unit="pixels").l0_pixels <= options.most)
    print(f"{model.name}, {options.attack}: {int(few.sum())} of {len(result)} images explained")
    slowest, rows = 0.0, []
    for row in few.nonzero():
        seconds, told = timed(result[row], model, settings)
        slowest = max(slowest, sum(seconds))
        polishing, maps, noise = seconds
        rows.append(
            {
                "model": model.name,
                "attack": options.attack,
                "images": 1,
                "pixels": told.changed_pixels,
                "groups": len(told.groups),
                "method": told.method,
                "largest_error": told.largest_error,
                "forwards": told.forwards,
                "backwards": told.backwards,
                "polishing_seconds": polishing,
                "maps_seconds": maps,
                "noise_seconds": noise,
            }
        )
        print(
            f"{told.changed_pixels:3} pixels {len(told.groups):3} groups {told.method:8}"
            f"error {told.largest_error:6.2%}  passes {told.forwards:5} {told.backwards:4}  "
            f"polish {polishing:5.1f} s  maps {maps:4.1f} s  noise {noise:5.1f} s",
            flush=True,
        )
    print(f"slowest {slowest:.1f} s")
    write_rows(options.out, rows, options.device)


def timed(
    result: AttackResult, model: Classifier, settings: NoiseSettings
) -> tuple[tuple[float, float, float], Explanation]:
    """Seconds of the three parts, and what came of them."""
    marks = [time.perf_counter()]
    result = polish(result, model, unit="pixels")
    marks.append(time.perf_counter())
    led_to = rivals(result)
    true = gradcam(model, result.images, result.goal.labels).values
    adversarial = gradcam(model, result.adversarial, led_to).values
    control = gradcam(model, result.images, led_to).values
    marks.append(time.perf_counter())
    (told,) = explain_noise(
        result,
        model,
        settings,
        true_maps=true,
        adversarial_maps=adversarial,
        control_maps=control,
    )
    marks.append(time.perf_counter())
    polishing, maps, noise = (later - earlier for earlier, later in pairwise(marks))
    return (polishing, maps, noise), told


if __name__ == "__main__":
    main()
