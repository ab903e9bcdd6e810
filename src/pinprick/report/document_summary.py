"""The summary of what ``attack`` and ``compare`` wrote: one JSON document per seed."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.needed import Numbers
from pinprick.metrics.outcomes import Outcomes
from pinprick.report.kept_small import KeptSmall, kept_small, kept_small_in_words
from pinprick.report.summary import Summary, summarise_outcomes
from pinprick.report.words import goal_words

Images = Sequence[Mapping[str, Any]]  # what one attack did to each picture, as the document has it


def summarise_documents(documents: Sequence[Mapping[str, Any]]) -> Summary:
    """The summary of result.json or compare.json, or of several of them that differ in the seed.

    Where a run ended early, the seeds and attacks with the most pictures are summarised.
    """
    by_seed = [attack_images(document) for document in documents]
    names = _names(list(by_seed[0]))
    outcomes = {
        name: _longest([outcomes_of(attacks[key]) for attacks in by_seed if key in attacks])
        for key, name in names.items()
    }
    models = dict.fromkeys(outcomes, str(documents[0]["model"]))
    settings = {name: key[1] for key, name in names.items()}
    paired = len({len(runs[0]) for runs in outcomes.values()}) == 1
    kept = {name: _kept_small(documents[0], key[1], by_seed[0][key]) for key, name in names.items()}
    targets = [image.get("target_name") for images in by_seed[0].values() for image in images]
    goal = goal_words(targets, documents[0].get("request", {}).get("target"))
    return summarise_outcomes(outcomes, models, settings, kept, paired=paired, goal=goal)


def _kept_small(document: Mapping[str, Any], settings: str, images: Images) -> KeptSmall:
    """Grey images have as many pixels as elements, so that both shares are the same."""
    grey = all(
        image.get("l0_pixels_percent") == image.get("l0_elements_percent") for image in images
    )
    if "attacks" not in document:
        return kept_small(document["attack"], grey=grey)
    return kept_small_in_words(images[0].get("unit"), settings, grey=grey)


def attack_images(document: Mapping[str, Any]) -> dict[tuple[str, str], Images]:
    """What each attack did, by its name and settings; result.json has one without settings."""
    if "attacks" not in document:
        return {(str(document["attack"]["name"]), ""): document["images"]}
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for image in document["images"]:
        for column in image["attacks"]:
            found.setdefault((column["attack"], column["settings"]), []).append(column)
    return dict(found)


def _names(keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The name of each attack in the tables; with a number where it stands there several times."""
    count: dict[str, int] = {}
    names = {}
    for key in keys:
        count[key[0]] = count.get(key[0], 0) + 1
        names[key] = key[0] if count[key[0]] == 1 else f"{key[0]} #{count[key[0]]}"
    return names


def _longest(runs: Sequence[Outcomes]) -> list[Outcomes]:
    most = max(len(run) for run in runs)
    return [run for run in runs if len(run) == most]


def outcomes_of(images: Images) -> Outcomes:
    """What was measured, one entry per picture."""

    def column(name: str) -> list[Any]:
        return [image[name] for image in images]

    return Outcomes(
        correct=np.array(column("correct"), dtype=bool),
        answered=_answered(images),
        attacked=~np.array(column("skipped"), dtype=bool),
        pixels=_needed(column("needed_pixels")),
        elements=_needed(column("needed_elements")),
        forwards=np.array(column("forwards"), dtype=np.int64),
        backwards=np.array(column("backwards"), dtype=np.int64),
        seconds=float(sum(column("seconds"))),
    )


def _answered(images: Images) -> NDArray[np.bool_]:
    """Whether the model answered for the clean picture.

    Without an answer there is no confidence, and no attack. A model that gives labels alone has no
    confidences at all.
    """
    sure = np.array([image["clean"]["confidence"] is not None for image in images], dtype=bool)
    asked = np.array([image["skipped"] or image["forwards"] > 0 for image in images], dtype=bool)
    correct = np.array([image["correct"] for image in images], dtype=bool)
    answered: NDArray[np.bool_] = sure | correct | (asked & (not sure.any()))
    return answered


def _needed(counts: Sequence[int | None]) -> Numbers:
    return np.array([math.inf if count is None else count for count in counts], dtype=np.float64)
