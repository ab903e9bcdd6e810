"""The notebooks run from top to bottom, and show what their outputs say."""

from pathlib import Path
from typing import Any

import pytest

from prose import read_prose
from run_notebooks import FOLDER, read_notebook, run_notebook

pytestmark = pytest.mark.plain
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def kinds(notebook: dict[str, Any]) -> list[list[str]]:
    """Which kinds of output each cell has; numbers differ a little between machines."""
    cells = (cell.get("outputs", ()) for cell in notebook["cells"])
    return [[kind for one in outputs for kind in (one.get("data") or one)] for outputs in cells]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_those_of_its_code(path: Path) -> None:
    notebook = read_notebook(path)
    before = kinds(notebook)
    run_notebook(notebook)
    assert kinds(notebook) == before, "run: python docs/run_notebooks.py"
    shown = [
        one["data"]
        for cell in notebook["cells"]
        for one in cell.get("outputs", ())
        if "data" in one
    ]
    assert any("<svg" in data.get("text/html", "") for data in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_short_sentences(path: Path) -> None:
    cells = read_notebook(path)["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    prose = read_prose(text)  # a paragraph of a notebook is one raw line, however long
    assert [fault for fault in prose.faults() if not fault.startswith("line ")] == []
