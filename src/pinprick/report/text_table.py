"""A table of text as aligned plain text, Markdown or LaTeX."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill as _fill

_WIDTH = 100  # of sentences in plain text
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "σ": r"$\sigma$",
}


@dataclass(frozen=True)
class TextTable:
    """Columns, rows and what the table shows; the first column is the name of its row."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """The caption, the head and the rows, each column as wide as it has to be."""
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["─" * width for width in widths])
        laid = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([self.caption, *laid])

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        laid = [
            "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines
        ]
        return "\n".join([self.caption, "", *laid])

    def latex(self) -> str:
        """A ``tabular`` with the rules of booktabs, and the caption as a comment."""
        head, *rows = (
            " & ".join(map(_latex, line)) + r" \\" for line in [self.columns, *self.rows]
        )
        return "\n".join(
            [
                f"% {self.caption}",
                rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}",
                r"\toprule",
                head,
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )


def fill(text: str) -> str:
    """A sentence in lines of at most 100 characters."""
    return _fill(text, _WIDTH)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
