"""The report as one HTML file: everything that it needs is in it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pinprick import __version__
from pinprick.errors import BadInput
from pinprick.files import write_text
from pinprick.pages.aggregates import (
    UNITS,
    accuracy_curves,
    attack_line,
    cost_series,
    points_per_curve,
    query_curves,
    resamples_for,
    summarise_attacks,
    transfer_map,
)
from pinprick.pages.gallery import BLOCK, Gallery, choose_images, share_images
from pinprick.pages.inline_assets import script, style
from pinprick.pages.read_sources import read_sources
from pinprick.pages.report_parts import Source
from pinprick.pages.report_words import summary_sentences
from pinprick.pages.tasks import TaskRuns, tasks_of

_ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class ReportPage:
    """A report that is not written yet.

    Attributes:
        html: The page.
        images: Number of images in the gallery.
        of: Number of images in the results.
        pictured: Number of images whose clean picture was found.
    """

    html: str
    images: int
    of: int
    pictured: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.html.encode())

    def __str__(self) -> str:
        """For instance "1,000 of 10,000 images, 4.2 MB"."""
        shown = (
            f"{self.images:,} images"
            if self.images == self.of
            else (f"{self.images:,} of {self.of:,} images")
        )
        return f"{shown}, {self.size / 1e6:.1f} MB"

    def numbers(self) -> dict[str, int]:
        """As JSON can hold it."""
        return {
            "bytes": self.size,
            "images": self.images,
            "of": self.of,
            "pictured": self.pictured,
        }

    def write(self, path: str | Path) -> None:
        """Write the file, whole or not at all."""
        write_text(Path(path), self.html)


def make_report(
    paths: Sequence[str | Path],
    *,
    images: int | None = None,
    title: str | None = None,
    made_from: str | None = None,
) -> ReportPage:
    """The report of stores, folders of results and files.

    Args:
        paths: What to read, as for ``read_sources``.
        images: Most images in the gallery, over all tasks. By default 1000, or as many as take
            about 10 MB.
        title: The title of the page; by default the model or the number of models.
        made_from: What the page names as its source; by default the paths.
    """
    if images is not None and images < 0:
        raise BadInput(f"the number of images must be at least 0, got {images}")
    if not paths:
        raise BadInput("give a store, a folder of results or a result.json")
    sources = read_sources([Path(path) for path in paths])
    tasks = tasks_of(sources)
    gallery = Gallery()
    attacks = sum(len(task.by_attack) for task in tasks)
    shares = share_images(tasks, images)
    data = [
        _task(number, task, gallery, share, attacks)
        for number, (task, share) in enumerate(zip(tasks, shares, strict=True))
    ]
    transfers = transfer_map([line for source in sources for line in source.transfers])
    names = [source.name for source in sources] if made_from is None else [made_from]
    return _page(tasks, data, transfers, gallery, sources, names, title)


def _task(number: int, task: TaskRuns, gallery: Gallery, most: int, attacks: int) -> dict[str, Any]:
    """One task as plain data: the plots, and at most so many images.

    ``attacks`` is the number of attacks on all tasks.
    """
    summaries = summarise_attacks(task.by_attack, resamples_for(attacks))
    points = points_per_curve(attacks * (len(UNITS) + 1))
    by_attack = {name: task.by_attack[name] for name in summaries}
    chosen = choose_images(task, most)
    entries = {}
    for name, runs in by_attack.items():
        known = {*runs[0].images, *runs[0].failed}
        own = task.readers[name]([image for image in chosen if image in known])
        entries[name] = {entry.image: entry for entry in own}
    return {
        "model": task.task.model,
        "data": task.task.data,
        "goal": task.task.goal,
        "images": len(task.images),
        "attacks": [
            attack_line(summaries[name], runs, task.left_out.get(name, ()))
            for name, runs in by_attack.items()
        ],
        "accuracy": {unit: accuracy_curves(by_attack, unit, points) for unit in UNITS},
        "cost": {unit: cost_series(by_attack, summaries, unit) for unit in UNITS},
        "queries": query_curves(by_attack, points),
        "gallery": gallery.add_task(number, chosen, entries),
    }


def _page(
    tasks: Sequence[TaskRuns],
    data: Sequence[dict[str, Any]],
    transfers: Mapping[str, Any] | None,
    gallery: Gallery,
    sources: Sequence[Source],
    names: Sequence[str],
    title: str | None,
) -> ReportPage:
    places, sheets = gallery.sheets()
    models = sorted({task.task.model for task in tasks})
    shown = sum(len(one["gallery"]["name"]) for one in data)
    found = [number for one in data for number in one["gallery"]["picture"]]
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title or (models[0] if len(models) == 1 else f"{len(models)} models"),
            version=__version__,
            sources=names,
            made_with=sorted({text for source in sources for text in _made_with(source)}),
            tasks=[{**one, "words": summary_sentences(one)} for one in data],
            has_transfer=transfers is not None,
            style=Markup(style()),
            script=Markup(script("report")),
            data=as_script_data({"tasks": data, "transfer": transfers, "block": BLOCK}),
            places=as_script_data(places),
            sheets=[Markup(sheet) for sheet in sheets],
            blocks={name: as_script_data(block) for name, block in gallery.blocks.items()},
        )
    )
    return ReportPage(
        page,
        images=shown,
        of=sum(one["images"] for one in data),
        pictured=sum(number is not None for number in found),
    )


def _made_with(source: Source) -> Iterator[str]:
    if source.made_with.get("pinprick"):
        yield f"pinprick {source.made_with['pinprick']} on {source.made_with['device'] or 'cpu'}"


def as_script_data(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
