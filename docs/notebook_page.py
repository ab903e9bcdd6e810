"""A notebook as a page in Markdown: text, code and what it printed or showed."""

import json
from collections.abc import Iterator
from typing import Any


def notebook_page(text: str) -> str:
    """The cells of a notebook one after another, each with its outputs."""
    cells = json.loads(text)["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        shown = output.get("data", {})
        if "text/html" in shown:
            yield f"<div class='shown'>{''.join(shown['text/html'])}</div>"
        else:
            text = "".join(output.get("text") or shown["text/plain"])
            yield f"```text\n{text.rstrip()}\n```"
