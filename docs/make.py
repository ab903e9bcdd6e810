"""Makes again what the pages hold of the program's own making; ``scripts/docs`` runs it.

The table of attacks comes from the cards, and so does where each differs from its paper. The
reference of results and public names comes from docstrings, that of commands from the program,
those of settings and files from their fields. The pictures are figures as ``pinprick attack`` and
``pinprick explain`` write them, of the rocket and the coffee of the demo, by Pinprick on the
embedded model; those of the explanation are made smaller, since a page need not be heavy. The
curves are what the page on metrics draws. Measured values and plots come from rows by
``generators``.
``PICTURES`` says what makes each picture; all have full colours. Figures of the paper are made by
name alone, such as ``paper_figure1``: they take minutes, and two need networks of plans/paper.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PIL import Image

import pinprick
from command_reference import fill_commands
from format_reference import fill_formats
from generators import all_pages, fill_page, floors, leaderboard, optimum, paper, parity, speed
from generators.interpretation import examples
from generators.interpretation import figures as interpretation
from generators.paper import pictures
from pinprick.attacks import ATTACKS
from pinprick.data.sets.photographs import read_photographs
from pinprick.report.docs_reference import python_reference
from pinprick.report.docs_settings import settings_reference
from pinprick.report.docs_tables import attack_table, with_differences

ROOT = Path(__file__).parent.parent
METHODS = ROOT / "docs" / "methods" / "README.md"
COMMANDS = ROOT / "docs" / "reference" / "commands.md"
SETTINGS = ROOT / "docs" / "reference" / "settings.md"
FORMATS = ROOT / "docs" / "reference" / "file_formats.md"
RESULT = ROOT / "docs" / "reference" / "result.md"
IMAGES = ROOT / "docs" / "images"
_WIDE = 720  # pixels of a picture on a page
TABLE = re.compile(r"(?<=<!-- table of attacks -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
REFERENCE = re.compile(r"(?<=<!-- reference -->\n).*?(?=<!-- end of reference -->)", re.DOTALL)
SETTINGS_MARKS = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- end of settings -->)", re.DOTALL)


def make_table() -> None:
    """Put the table of attacks between its two marks."""
    text, found = TABLE.subn(f"{attack_table()}\n", METHODS.read_text(encoding="utf-8"))
    assert found == 1, "docs/methods/README.md has lost the marks around its table"
    METHODS.write_text(text, encoding="utf-8")


def make_differences() -> None:
    """Put what the cards say into the pages of the methods."""
    for name, attack in ATTACKS.items():
        page = ROOT / "docs" / "methods" / f"{name}.md"
        text = with_differences(page.read_text(encoding="utf-8"), attack.card)
        page.write_text(text, encoding="utf-8")


def make_reference() -> None:
    """Put what the docstrings say into the page on results."""
    reference = python_reference(pinprick._HOME)
    text, found = REFERENCE.subn(lambda _: f"{reference}\n", RESULT.read_text(encoding="utf-8"))
    assert found == 1, f"{RESULT} has lost the marks around its reference"
    RESULT.write_text(text, encoding="utf-8")


def make_settings() -> None:
    """Put what the fields of the attacks say into the page on settings."""
    settings = settings_reference("../methods/")
    text, found = SETTINGS_MARKS.subn(lambda _: f"{settings}\n", SETTINGS.read_text("utf-8"))
    assert found == 1, f"{SETTINGS} has lost the marks around its settings"
    SETTINGS.write_text(text, encoding="utf-8")


def make_commands() -> None:
    """Put what the program says of its commands into their page."""
    page = fill_commands(COMMANDS.read_text(encoding="utf-8"))
    COMMANDS.write_text(page, encoding="utf-8")


def make_formats() -> None:
    """Put the fields of the files that are written into their page."""
    page = fill_formats(FORMATS.read_text(encoding="utf-8"))
    FORMATS.write_text(page, encoding="utf-8")


def make_measured() -> None:
    """Put what the rows say between the marks of measured values."""
    for page, blocks in all_pages().items():
        fill_page(page, blocks)


def make_leaderboard() -> None:
    """Draw the figure of the leaderboard from its rows."""
    leaderboard.save_figure()


def make_optimum() -> None:
    """Draw the figures of the page on optima from their rows."""
    optimum.save_figure()
    floors.save_figure()


def make_parity() -> None:
    """Draw the figure of parity with public code from its rows."""
    parity.save_figure()


def make_speed() -> None:
    """Draw the figure of the page on speed from its rows."""
    speed.save_figure()


def make_paper() -> None:
    """Draw the figures of the paper's pages from their rows."""
    paper.save_figures()


def make_interpretation() -> None:
    """Draw the plots of the page on interpretation from its rows."""
    interpretation.save()


def make_examples() -> None:
    """Explain eight random images of the package and draw them."""
    examples.save()


def make_picture() -> None:
    """Attack the rocket and keep the figure."""
    with tempfile.TemporaryDirectory() as folder:
        _run("attack", folder, "rocket")
        shutil.copyfile(Path(folder) / "rocket-figure.png", IMAGES / "attack.png")


def make_start() -> None:
    """Attack the images of the page for newcomers and keep the figure of the first."""
    with tempfile.TemporaryDirectory() as folder:
        data = ["--data", "fashion_sample", "--limit", "4", "--model", "pinprick:fashion_cnn"]
        more = ["--option", "effort=fast", "--out", folder]
        subprocess.run(["pinprick", "attack", *data, *more], check=True)
        shutil.copyfile(Path(folder) / "fashion_sample-test-0-figure.png", IMAGES / "start.png")


def make_explanation() -> None:
    """Explain the attack on the coffee and keep both figures, smaller."""
    with tempfile.TemporaryDirectory() as folder:
        _run("explain", folder, "coffee", "--option", "effort=fast")
        for found, kept in (("explained", "explanation"), ("effects", "effects")):
            with Image.open(Path(folder) / f"coffee-{found}.png") as figure:
                high = round(figure.height * _WIDE / figure.width)
                small = figure.convert("RGB").resize((_WIDE, high), Image.Resampling.LANCZOS)
            small.save(IMAGES / f"{kept}.png", optimize=True)


def make_curves() -> None:
    """Run the code of the page on metrics and keep the figure that it writes."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
        shutil.copyfile(Path(folder) / "curves.png", IMAGES / "curves.png")


def _run(command: str, folder: str, name: str, *more: str) -> None:
    """Run a command of the program on a photograph of the demo."""
    path = {photo.record.name: photo.record.path for photo in read_photographs()}[name]
    subprocess.run(["pinprick", command, path, "--out", folder, *more], check=True)


MAKERS: dict[str, Callable[[], None]] = {
    "table": make_table,
    "differences": make_differences,
    "reference": make_reference,
    "commands": make_commands,
    "settings": make_settings,
    "formats": make_formats,
    "measured": make_measured,
    "leaderboard": make_leaderboard,
    "optimum": make_optimum,
    "parity": make_parity,
    "speed": make_speed,
    "paper": make_paper,
    "interpretation": make_interpretation,
    "examples": make_examples,
    "picture": make_picture,
    "start": make_start,
    "explanation": make_explanation,
    "curves": make_curves,
    **{f"paper_figure{number}": partial(pictures.save, number) for number in pictures.PICTURES},
}

PICTURES = {
    "leaderboard": ["leaderboard.png"],
    "optimum": ["optimum.png", "floors.png"],
    "parity": ["parity.png"],
    "speed": ["speed.png"],
    "paper": [*paper.FIGURES, paper.ABLATIONS],
    "interpretation": [f"interpretation_{name}.png" for name in interpretation.PLOTS],
    "examples": ["interpretation_examples.png"],
    "picture": ["attack.png"],
    "start": ["start.png"],
    "explanation": ["explanation.png", "effects.png"],
    "curves": ["curves.png"],
    **{f"paper_figure{number}": [pictures.image_name(number)] for number in pictures.PICTURES},
}

BY_NAME_ALONE = [name for name in MAKERS if name.startswith("paper_figure")]  # minutes each

if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in MAKERS if name not in BY_NAME_ALONE]:
        if name not in MAKERS:
            sys.exit(f"scripts/docs makes {' and '.join(MAKERS)}, not {name}")
        MAKERS[name]()
