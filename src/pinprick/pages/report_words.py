"""The summary of a task in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

from pinprick.report.words import FIXED


def summary_sentences(task: Mapping[str, Any]) -> list[str]:
    """What the attacks did, the best first; every number is also in the table."""
    best, *rest = task["attacks"]
    others = [line for line in rest if line["correct"]]
    sentences = [_main_sentence(best, task)]
    if best["correct"]:
        sentences.append(_cost_sentence(best))
    if others:
        sentences.append(_others_sentence(best, others))
    lost = sum(line["lost_as_png"] for line in task["attacks"])
    if lost:
        sentences.append(
            f"{lost} adversarial {_plural(lost, 'image does', 'images do')} not fool the model "
            "after rounding to 8-bit values."
        )
    errors = sum(line["errors"] for line in task["attacks"])
    if errors:
        sentences.append(f"{errors} {_plural(errors, 'row has', 'rows have')} an error.")
    return sentences + [_left_out_sentence(line) for line in task["attacks"] if line["left_out"]]


def _main_sentence(line: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    if not line["images"]:
        return f"No attack on {task['model']} has a result without an error."
    if not line["correct"]:
        return f"{task['model']} classified no image correctly before the attack."
    rate, low, high = line["fooling_rate"]
    seeds = f" in the mean of {line['seeds']} seeds" if line["seeds"] > 1 else ""
    return (
        f"{line['attack']} fooled {number(line['fooled'])} of {line['correct']:,} correctly "
        f"classified images{seeds}: {percent(rate)} "
        f"(95{FIXED}% interval {percent(low)} to {percent(high)})."
    )


def _cost_sentence(line: Mapping[str, Any]) -> str:
    pixels, elements = line["median_pixels"][0], line["median_elements"][0]
    passes = f"{number(line['forwards'])} forward and {number(line['backwards'])} backward passes"
    if pixels is None:
        needed = "The median is infinite: the attack failed on at least half of these images."
    elif pixels == elements:  # as in grey images
        needed = f"The median image needed {count(pixels, 'changed pixel')}."
    else:
        needed = f"The median image needed {count(pixels, 'pixel')}, {count(elements, 'element')}."
    return f"{needed} The attack took {passes} per image."


def _others_sentence(best: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    if best["median_pixels"][0] is None:
        return f"{len(others)} other {_plural(len(others), 'attack was', 'attacks were')} run."
    second, median = others[0]["attack"], others[0]["median_pixels"][0]
    next_one = (
        f"{second} failed on at least half of the images"
        if median is None
        else f"the next is {second} with {count(median, 'pixel')}"
    )
    if len(others) == 1:
        return f"The other attack has no lower median: {next_one}."
    return f"None of the {len(others)} other attacks has a lower median: {next_one}."


def _left_out_sentence(line: Mapping[str, Any]) -> str:
    seeds = line["left_out"]
    names = ", ".join(map(str, seeds))
    return (
        f"The numbers of {line['attack']} are without {_plural(len(seeds), 'seed', 'seeds')} "
        f"{names}, which {_plural(len(seeds), 'lacks', 'lack')} images because of errors."
    )


def number(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """For instance "97.5 %"; "undefined" without images."""
    if share is None:
        return "undefined"
    return f"{100 * share:.{0 if share in (0, 1) else 1}f}{FIXED}%"


def count(value: float | None, unit: str) -> str:
    """For instance "3 pixels" or "2.5 pixels"."""
    if value is None:
        return f"∞ {unit}s"
    return f"{value:,g} {unit if value == 1 else f'{unit}s'}"


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many
