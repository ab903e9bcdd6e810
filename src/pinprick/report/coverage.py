"""Which images an attack covers. Only an attack that covers all of them is ranked.

A task is a model on some data with a goal. An attack covers an image of a task if it has a row
without an error under each of its seeds. It is complete if it covers every image that any attack
was run on, so that all ranked attacks share all images.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pinprick.report.store_runs import Indices, Run, StoreRuns, Task, shared_images


@dataclass(frozen=True, eq=False)
class Coverage:
    """What one attack has of all images.

    Attributes:
        images: The images that it covers, by task; only tasks with such images.
        runs: Its runs on these images, by task, in the order of seeds.
        done, expected: Rows that it has, and should have, over all seeds.
        errors: Rows with an error.
        seeds: The largest number of seeds in a task.
    """

    images: Mapping[Task, Indices]
    runs: Mapping[Task, tuple[Run, ...]]
    done: int
    expected: int
    errors: int
    seeds: int

    @property
    def complete(self) -> bool:
        return self.done == self.expected > 0


def cover(store: StoreRuns, attack: str) -> Coverage:
    """What an attack has of all images of the store."""
    seeds: dict[str, set[int]] = {}  # that the attack has anywhere, by goal
    for (name, task), by_seed in store.runs.items():
        if name == attack:
            seeds.setdefault(task.goal, set()).update(by_seed)
    images, runs, done, expected = {}, {}, 0, 0
    for task, wanted in store.images.items():
        its_seeds = sorted(seeds.get(task.goal, {0}))
        by_seed = store.runs.get((attack, task), {})
        have = [
            shared_images((by_seed[seed].index, wanted)) for seed in its_seeds if seed in by_seed
        ]
        done += sum(map(len, have))
        expected += len(wanted) * len(its_seeds)
        if len(have) == len(its_seeds) and len(shared := shared_images(have)):
            images[task] = shared
            runs[task] = tuple(by_seed[seed].on(shared) for seed in its_seeds)
    most = max((len(one) for one in seeds.values()), default=0)
    errors = sum(count for (name, _), count in store.errors.items() if name == attack)
    return Coverage(images, runs, done, expected, errors, most)
