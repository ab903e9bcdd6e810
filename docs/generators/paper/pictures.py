"""Figures 1 and 3 to 6 of the paper, of photographs of the demo, and what they show as rows.

The commands of a figure are those that its page shows. They write to pinprick-out/, so that a run
that was stopped goes on there. The picture goes to docs/images/, its numbers to
results/paper_figures/.
"""

import json
import re
import shlex
import shutil
import subprocess
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from generators.paper.printed import NETWORKS_FILE, published
from generators.paper.rows import ROOT
from generators.paper.text import DASH
from pinprick.attacks import ATTACKS
from pinprick.data.sets.photographs import read_photographs
from pinprick.explain.noise.labels import LABELS
from pinprick.files import write_text
from pinprick.report.docs_measured import markdown_table, wrapped
from pinprick.report.words import signed

ROWS = ROOT / "results" / "paper_figures"
IMAGES = ROOT / "docs" / "images"
_OUT = Path("pinprick-out")  # from the root of the repository
_LITE1 = f"{NETWORKS_FILE}efficientnet_lite1"
_RESULT = "found.safetensors"
_LEVELS = 64  # values of a channel in a picture, so that no bands are seen


@dataclass(frozen=True)
class PaperPicture:
    """One figure of the paper, made of a photograph.

    Attributes:
        photo: File name of the photograph in the demo.
        commands: What is run, as the page shows it.
        alt: What the picture shows, for those who do not see it.
        wide: Pixels of its width.
    """

    photo: str
    commands: tuple[str, ...]
    alt: str
    wide: int


PICTURES = {
    1: PaperPicture(
        "coffee.png",
        (
            "pinprick compare coffee.png --attacks ifgsm,brusle:quick,wifgsm:imagenet "
            "--option brusle:quick.k=1000 "
            f"--judge {_LITE1}",
        ),
        "A cup of coffee under three attacks, with the predictions of the judge",
        800,
    ),
    3: PaperPicture(
        "camera.png",
        (
            "pinprick compare camera.png --attacks cw_l0:quick,greedyfool,homotopy,wifgsm:imagenet "
            "--option homotopy.growth=200 --target least-likely --max-passes 1000",
        ),
        "A man with a camera under four targeted attacks",
        900,
    ),
    4: PaperPicture(
        "coffee.png",
        (
            f"pinprick attack coffee.png --attack wifgsm --option preset=imagenet --save {_RESULT}",
            f"pinprick explain {_RESULT} coffee.png --map gradcam",
        ),
        "A cup of coffee before and after, with Grad-CAM and Guided Grad-CAM",
        760,
    ),
    5: PaperPicture(
        "chelsea.png",
        (
            "pinprick compare chelsea.png "
            "--attacks sparsefool,greedyfool,homotopy,wifgsm:imagenet "
            "--option homotopy.growth=200 --max-passes 1000",
        ),
        "A cat under four untargeted attacks",
        900,
    ),
    6: PaperPicture(
        "rocket.jpg",
        (
            f"pinprick attack rocket.jpg --model {_LITE1} --attack wifgsm "
            f"--option preset=imagenet --save {_RESULT}",
            f"pinprick explain {_RESULT} rocket.jpg --model {_LITE1} --map gradcam",
        ),
        "A rocket before and after, with Grad-CAM and Guided Grad-CAM",
        760,
    ),
}


def image_name(number: int) -> str:
    """The file of a figure in docs/images/."""
    return f"paper_figure{number}.png"


def save(number: int) -> None:
    """Run the commands of a figure; save the picture and its rows."""
    picture, folder = PICTURES[number], ROOT / _OUT / f"paper_figure{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for step, command in enumerate(picture.commands):
        _run(command, picture.photo, folder, str(step))
    out = folder / str(len(picture.commands) - 1)
    file = "compare" if (out / "compare.json").exists() else "explanation"
    document = json.loads((out / f"{file}.json").read_text(encoding="utf-8"))
    (image,) = document["images"]
    name = image["figure"] if file == "compare" else image["files"]["figure"]
    with Image.open(out / name) as figure:
        smaller(figure, picture.wide).save(IMAGES / image_name(number), optimize=True)
    rows = _compared(document) if file == "compare" else [_explained(image)]
    found = {
        "commands": picture.commands,
        "commit": _commit(),
        **{key: document[key] for key in ("pinprick", "torch", "device", "threads", "seed")},
        "model": document["model"],
        "rows": rows,
    }
    ROWS.mkdir(exist_ok=True)
    write_text(rows_file(number), json.dumps(found, indent=1) + "\n")
    shutil.rmtree(folder)


def smaller(figure: Image.Image, wide: int) -> Image.Image:
    """The figure with fewer pixels and values: photographs make a PNG heavy."""
    high = round(figure.height * wide / figure.width)
    small = figure.convert("RGB").resize((wide, high), Image.Resampling.BOX)
    steps = _LEVELS - 1
    return small.point(
        [round(round(value * steps / 255) * 255 / steps) for value in range(256)] * 3
    )


def _run(command: str, photo: str, folder: Path, step: str) -> None:
    """Run one command, with the photograph and the saved result where they are.

    An attack or comparison that was stopped goes on. One that has finished is not run again.
    An explanation is.
    """
    paths = {str(Path(one.record.path).name): str(one.record.path) for one in read_photographs()}
    places = {photo: paths[photo], _RESULT: str(folder / _RESULT)}
    words = [places.get(word, word) for word in shlex.split(command)]
    out = folder / step
    if (out / "unfinished").exists():
        words.append("--resume")
    elif any(json.loads(path.read_bytes()).get("complete") for path in out.glob("*.json")):
        return
    subprocess.run([*words, "--out", str(out)], cwd=ROOT, check=True)


def _compared(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per attack of a comparison of one picture."""
    (image,) = document["images"]
    names = ("attack", "settings", "unit", "label_name", "target_name", "clean", "adversarial")
    counts = ("success", "l0_elements", "l0_pixels", "forwards", "backwards", "seconds")
    return [
        {key: one[key] for key in (*names, *counts, "out_of_budget", "judge")}
        | {"clean_judge": image["judge"], "revision": ATTACKS[one["attack"]].card.revision}
        for one in image["attacks"]
    ]


def _explained(image: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an explanation."""
    found = image["explanation"]
    return {
        "attack": "wifgsm",
        "revision": ATTACKS["wifgsm"].card.revision,
        "clean": image["clean"],
        "adversarial": image["adversarial"],
        "pixels": found["changed_pixels"],
        "kinds": Counter(group["shapley"]["label"] for group in found["groups"]),
        "obscuring": found["obscuring"],
        "leading": found["leading"],
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def rows_file(number: int) -> Path:
    return ROWS / f"figure{number}.json"


def block(number: int) -> str:
    """What the page shows of a figure: the picture, its numbers and its commands."""
    picture = PICTURES[number]
    document = json.loads(rows_file(number).read_text(encoding="utf-8"))
    shown = f"![{picture.alt}](../images/{image_name(number)})"
    rows = document["rows"]
    printed = published().get(f"figure{number}")
    said = _effects(rows[0]) if "kinds" in rows[0] else attack_table(rows, printed)
    commands = "\n".join(_folded_command(command) for command in document["commands"])
    return f"{shown}\n\n{said}\n\n```\n{commands}\n```"


def attack_table(
    rows: list[dict[str, Any]], printed: Mapping[str, Sequence[int]] | None = None
) -> str:
    """A line per attack of a comparison, beside the elements that the paper prints."""
    judged = rows[0]["judge"] is not None
    columns = ("attack", "the paper's elements", "elements", "pixels", "passes", "attacked network")
    lines = [
        [
            ATTACKS[row["attack"]].card.title,
            ", ".join(map(str, (printed or {}).get(row["attack"], [DASH]))),
            str(row["l0_elements"]) if row["success"] else DASH,
            str(row["l0_pixels"]) if row["success"] else DASH,
            str(row["forwards"] + row["backwards"]),
            row["adversarial"]["name"] if row["success"] else "not fooled",
            *([row["judge"]["name"]] if judged else []),
        ]
        for row in rows
    ]
    table = markdown_table((*columns, *(["judge"] if judged else [])), lines)
    said = [f"Before the attacks the network says {rows[0]['label_name']}"]
    if judged:
        said[0] += f", and the judge says {rows[0]['clean_judge']['name']}"
    if rows[0]["target_name"]:
        said.append(f"The target is {rows[0]['target_name']}")
    fooled = [row for row in rows if row["success"]]
    fewest = min((row["l0_elements"] for row in fooled), default=None)
    said.append(
        f"Fewest elements: {_titles(row for row in fooled if row['l0_elements'] == fewest)}"
    )
    if judged:
        moved = (row for row in rows if row["judge"]["index"] != row["clean_judge"]["index"])
        said.append(f"The judge is fooled by: {_titles(moved)}")
    return f"{wrapped('. '.join(said) + '.')}\n\n{table}"


def _titles(rows: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(ATTACKS[row["attack"]].card.title for row in rows) or "none"


def _effects(row: Mapping[str, Any]) -> str:
    """What the groups of an explanation do, in sentences."""
    clean, adversarial = (row[key]["name"] for key in ("clean", "adversarial"))
    kinds = ", ".join(f"{row['kinds'][name]} {name}" for name in LABELS if row["kinds"].get(name))
    count, pixels = sum(row["kinds"].values()), row["pixels"]
    return wrapped(
        f"{pixels} changed pixel{'s' * (pixels != 1)} turn {clean} into {adversarial}. "
        f"Groups of changed pixels: {count} ({kinds}). "
        f"Together they change the score of {clean} by {signed(-row['obscuring'])} logits and that "
        f"of {adversarial} by {signed(row['leading'])}."
    )


def _folded_command(command: str) -> str:
    """The command in lines that fit the site; an option and its value stay together."""
    whole = re.sub(r"(--[\w-]+) (?!-)", "\\1\0", command)
    lines = textwrap.wrap(
        whole, 84, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return " \\\n".join(lines).replace("\0", " ")
