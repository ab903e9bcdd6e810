"""The runs of all sources by task and attack, with one name per attack."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from pinprick.pages.report_parts import PICTURES, ReadEntries, ReportRun, Source, Task
from pinprick.report.attack_labels import attack_labels

Attacks = dict[str, list[tuple[ReportRun, ReadEntries]]]  # by name; one entry per seed
PNG_SHARE = 0.8  # size of a PNG of a photograph, as a share of its values


@dataclass(frozen=True, eq=False)
class TaskRuns:
    """One task and the attacks that were run on it.

    Attributes:
        task: What was attacked.
        by_attack: The runs of each attack, one per seed, all of the same images.
        readers: Per attack, the function that reads what its first run did to some images.
        left_out: Per attack, the runs of seeds that lack images, because of errors.
    """

    task: Task
    by_attack: dict[str, list[ReportRun]]
    readers: dict[str, ReadEntries]
    left_out: dict[str, list[ReportRun]] = field(default_factory=dict)

    @property
    def images(self) -> list[str]:
        """The images of all attacks, also those with an error, in the order of the first runs."""
        runs = [runs[0] for runs in self.by_attack.values()]
        every = dict.fromkeys(image for run in runs for image in run.images)
        return list(every | dict.fromkeys(image for run in runs for image in run.failed))

    @property
    def bytes_each(self) -> float:
        """About how many bytes the picture of an image takes, in base64."""
        elements = max(runs[0].elements for runs in self.by_attack.values())
        return PNG_SHARE * max(1, elements) * 4 / 3


def tasks_of(sources: Sequence[Source]) -> list[TaskRuns]:
    """All tasks in order; of an attack with several seeds, the seeds with the most images.

    Only runs on the same images, also those with an error, are of one task.
    """
    found: dict[tuple[Task, frozenset[str]], Attacks] = {}
    labels = _labels([run for source in sources for run, _ in source.runs])
    for source in sources:
        for run, read in source.runs:
            images = frozenset((*run.images, *run.failed))
            attacks = found.setdefault((run.task, images), {})
            name = _free_name(labels[_key(run)], run, attacks)
            attacks.setdefault(name, []).append((run, read))
    tasks = []
    for task, attacks in _told_apart(found):
        kept = {name: _longest(pairs) for name, pairs in attacks.items()}
        left_out = {
            name: [run for run, _ in pairs if all(run is not own for own, _ in kept[name])]
            for name, pairs in attacks.items()
        }
        tasks.append(
            TaskRuns(
                task,
                {name: [run for run, _ in pairs] for name, pairs in kept.items()},
                {name: pairs[0][1] for name, pairs in kept.items()},
                left_out,
            )
        )
    return tasks


def _told_apart(found: Mapping[tuple[Task, frozenset[str]], Attacks]) -> list[tuple[Task, Attacks]]:
    """Tasks in order, with their attacks; where images of the same data differ, one is named."""
    sets = Counter(task for task, _ in found)
    named: list[tuple[Task, Attacks]] = []
    for (task, _), attacks in sorted(found.items(), key=lambda one: (one[0][0], -len(one[0][1]))):
        if sets[task] > 1:
            run = next(iter(attacks.values()))[0][0]
            first, *others = (*run.images, *run.failed)
            if task.data == PICTURES:
                first = PurePath(
                    first
                ).name  # a report is sent to others: no folders of this machine
            shown = f"{first} and {len(others)} more" if others else first
            task = task._replace(data=f"{task.data}: {shown}")
            while any(task == other for other, _ in named):
                task = task._replace(data=f"{task.data} (others)")
        named.append((task, attacks))
    return named


def _key(run: ReportRun) -> tuple[str, str]:
    return run.attack, json.dumps(run.settings, sort_keys=True)


def _labels(runs: Sequence[ReportRun]) -> dict[tuple[str, str], str]:
    """Per attack its name, with the settings in which attacks of one name differ."""
    keys = dict.fromkeys(map(_key, runs))
    found = attack_labels([{"attack": name, "settings": settings} for name, settings in keys])
    return {key: found[key] for key in keys}


def _free_name(name: str, run: ReportRun, taken: Attacks) -> str:
    """The name, with a number behind it where this seed has been read from another file."""
    number, free = 1, name
    while any(other.seed == run.seed for other, _ in taken.get(free, ())):
        number += 1
        free = f"{name} #{number}"
    return free


def _longest(
    pairs: Sequence[tuple[ReportRun, ReadEntries]],
) -> list[tuple[ReportRun, ReadEntries]]:
    """The seeds that have the same images as the seed with the most."""
    most = max((run for run, _ in pairs), key=lambda run: len(run.images))
    return sorted(
        (pair for pair in pairs if pair[0].images == most.images), key=lambda pair: pair[0].seed
    )
