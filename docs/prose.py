"""Measures the prose of the pages: lengths of sentences and lines.

A page passes with at most 18 words per sentence in the mean, no sentence over 30 words, and no raw
line over 160 characters. Code blocks, headings and comments have no sentences. Cells of tables
count for the longest sentence, and not for the mean: they are short by nature.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
MEAN_WORDS, MOST_WORDS, MOST_CHARACTERS = 18, 30, 160
FENCE = re.compile(r"^(?P<mark>```|~~~).*?^(?P=mark)[ ]*$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ADDRESS = re.compile(r"^\[[^\]]+\]: \S+$", re.MULTILINE)  # of a reference link
LINK = re.compile(r"!?\[(?P<text>[^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
CODE = re.compile(r"`[^`]*`")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?])[)\"'*_]*\s+(?=[^a-z\s])")  # "e.g. one" does not end a sentence
WORD = re.compile(r"[^\W_][\w'.,/+%-]*")


@dataclass(frozen=True)
class Prose:
    """The sentences of one page."""

    running: list[str]
    """Sentences of paragraphs and lists."""
    cells: list[str]
    """Sentences of cells of tables."""
    long_lines: list[int]
    """Numbers of the raw lines that are too long."""

    @property
    def mean_words(self) -> float:
        return sum(map(count_words, self.running)) / max(1, len(self.running))

    def faults(self) -> list[str]:
        """What has to change, one line each."""
        found = [
            f"{count_words(sentence)} words: {sentence}"
            for sentence in [*self.running, *self.cells]
            if count_words(sentence) > MOST_WORDS
        ]
        if self.mean_words > MEAN_WORDS:
            found.append(f"{self.mean_words:.1f} words per sentence in the mean")
        return found + [
            f"line {number} has over {MOST_CHARACTERS} characters" for number in self.long_lines
        ]


def read_prose(text: str) -> Prose:
    """The sentences and the long lines of a page in Markdown."""
    long_lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > MOST_CHARACTERS
    ]
    blocks: list[str] = [""]
    cells: list[str] = []
    for line in ADDRESS.sub("", COMMENT.sub("", FENCE.sub("\n\n", text))).splitlines():
        if line.startswith("|"):
            cells += line.strip("|").split(" | ")
            blocks.append("")
        elif not line.strip() or line.startswith(("#", "    ", ":::", "!!!", "---")):
            blocks.append("")
        elif ITEM.match(line):
            blocks.append(ITEM.sub("", line))
        else:
            blocks[-1] += f" {line.strip()}"
    return Prose(_sentences(blocks), _sentences(cells), long_lines)


def count_words(sentence: str) -> int:
    """Words of a sentence; a piece of code is one word."""
    return len(WORD.findall(sentence))


def pages() -> list[Path]:
    """Every page that people read."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "results" / "README.md",
    ]


def _sentences(blocks: list[str]) -> list[str]:
    plain = [CODE.sub("Code", LINK.sub(lambda found: found["text"], block)) for block in blocks]
    parts = [part.strip() for block in plain for part in END.split(block)]
    return [part for part in parts if count_words(part)]


def main(names: list[str]) -> int:
    """Print the faults of the named pages, or of all; the exit status says if there are any."""
    worst = 0
    for page in [Path(name).resolve() for name in names] or pages():
        prose = read_prose(page.read_text(encoding="utf-8"))
        faults = prose.faults()
        worst = max(worst, len(faults))
        name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
        for fault in faults:
            print(f"{name}: {fault}")
    return min(1, worst)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
