"""Which images of which set, as one line of text and back.

    cifar10                                  the test split
    cifar10/train                            another: train, test, or both
    cifar10/test[0:100]                      a range; [:100] the first hundred, [17] one, [::10]
    cifar10/test[class=cat|dog]              some classes, in words or by number
    cifar10/test[random=100,seed=7]          a hundred, drawn at random; always the same
    cifar10/test[@chosen.txt]                those that an index file lists
    cifar10/test[class=cat][:10]             applied in order: ten cats
    folder:photos[split=train][:100]         where the name is a path, the split is in brackets

A range counts what the brackets before it left. ``parse(describe(subset)) == subset``.
"""

import re
from dataclasses import dataclass

from pinprick.data.dataset import SPLITS
from pinprick.errors import BadInput, UnknownName


@dataclass(frozen=True)
class Range:
    """Images from ``start`` to before ``stop``; None for the end of the set."""

    start: int = 0
    stop: int | None = None
    step: int = 1


@dataclass(frozen=True)
class OfClass:
    """Images of some classes, in words or by number."""

    classes: tuple[str, ...]


@dataclass(frozen=True)
class Draw:
    """``count`` images, drawn at random."""

    count: int
    seed: int = 0


@dataclass(frozen=True)
class InIndexFile:
    """Images that an index file lists, in its order."""

    path: str


Step = Range | OfClass | Draw | InIndexFile


@dataclass(frozen=True)
class Subset:
    """Some images of a set: its name, its split, and the steps that choose them."""

    name: str
    split: str = "test"
    steps: tuple[Step, ...] = ()


_FORMS = {".csv": "csv", ".safetensors": "tensors"}  # how files are named, by their endings
_WHOLE = re.compile(r"(?P<head>.*?)(?P<steps>(?:\[[^\[\]]*\])*)", re.DOTALL)
_DIGITS = "[0-9]{1,18}"  # that always fit 64 bits
_ONE = re.compile(_DIGITS)
_RANGE = re.compile(f"({_DIGITS})?:({_DIGITS})?(?::({_DIGITS}))?")
_DRAW = re.compile(f"random=({_DIGITS})(?:,seed=({_DIGITS}))?")


def parse(text: str, *, split: str = "test") -> Subset:
    """The subset that ``text`` describes; ``BadInput`` if it describes none.

    Where the text names no split, the subset has the one that is given.
    """
    whole = _WHOLE.fullmatch(text.strip())
    assert whole is not None  # the head may be anything
    head, inner = whole["head"], re.findall(r"\[([^\[\]]*)\]", whole["steps"])
    name, slash, named = head, "", ""
    if not _has_path(head):
        name, slash, named = head.partition("/")
    if inner and inner[0].startswith("split="):
        if slash:
            raise BadInput(f"the split of {text} is given twice")
        slash, named = "/", inner.pop(0).removeprefix("split=")
    if not name or ("[" in head and not _has_path(head)):
        raise BadInput(
            f"a set is written NAME/SPLIT[IMAGES], as in cifar10/test[0:100]; got {text!r}"
        )
    for end, form in _FORMS.items():
        if head.lower().endswith(end) and not _has_path(head):
            raise BadInput(f"{head} is a file: write {form}:{text}")
    if slash and named not in SPLITS:
        raise UnknownName("split", named, SPLITS)
    return Subset(
        name, named if slash else split, tuple(_parse_step(part.strip()) for part in inner)
    )


def describe(subset: Subset) -> str:
    """The line that ``parse`` reads, with every default spelled out."""
    split = f"[split={subset.split}]" if _has_path(subset.name) else f"/{subset.split}"
    return f"{subset.name}{split}{''.join(f'[{_describe_step(step)}]' for step in subset.steps)}"


def _has_path(name: str) -> bool:
    return re.match(r"\w+:", name) is not None


def _parse_step(text: str) -> Step:
    if found := _RANGE.fullmatch(text):
        start, stop, step = found.groups()
        chosen = Range(int(start or 0), int(stop) if stop else None, int(step or 1))
        if chosen.step < 1 or (chosen.stop is not None and chosen.stop <= chosen.start):
            raise BadInput(f"the range [{text}] holds no image")
        return chosen
    if _ONE.fullmatch(text):
        return Range(int(text), int(text) + 1)
    if found := _DRAW.fullmatch(text):
        if not int(found[1]):
            raise BadInput(f"the draw [{text}] holds no image")
        return Draw(int(found[1]), int(found[2] or 0))
    if text.startswith("class=") and all(names := text.removeprefix("class=").split("|")):
        return OfClass(tuple(name.strip() for name in names))
    if text.startswith("@") and len(text) > 1:
        return InIndexFile(text[1:])
    raise BadInput(
        f"[{text:.40}] is no choice of images; write [0:100], [17], [class=cat], "
        "[random=100,seed=7] or [@FILE]"
    )


def _describe_step(step: Step) -> str:
    match step:
        case Range():
            every = f":{step.step}" if step.step != 1 else ""
            return f"{step.start}:{'' if step.stop is None else step.stop}{every}"
        case OfClass():
            return f"class={'|'.join(step.classes)}"
        case Draw():
            return f"random={step.count},seed={step.seed}"
        case InIndexFile():
            return f"@{step.path}"
