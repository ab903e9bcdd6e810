"""Numbers and classes as they are printed, in tables and under pictures alike."""

import textwrap

from pinprick.report.row import Guess, Row

FIXED = "\N{NO-BREAK SPACE}"  # where a line must not be broken


def said(guess: Guess) -> str:
    if not guess.heard:
        return "no answer"
    return f"{guess.name} {_sureness(guess)}".strip()


def said_below(guess: Guess, width: int = 26) -> str:
    """The same to stand under a picture: a long name is folded, the confidence always shown."""
    whole = said(guess)
    if len(whole) <= width:
        return whole
    return f"{folded(guess.name, width)}\n{_sureness(guess)}".strip()


def _sureness(guess: Guess) -> str:
    return "" if guess.confidence is None else f"{guess.confidence:.2f}"


def fate(row: Row) -> str:
    """How it went with one image, in a few words."""
    doubt = ", within noise" if row.within_noise else ""
    if row.skipped:
        return f"already {'wrong' if row.target is None else 'there'}{doubt}"
    found_by = f" by {row.found_by}" if row.found_by else ""
    return f"fooled{found_by}{doubt}" if row.success else f"{row.remark}{doubt}"


def changed(row: Row) -> str:
    """Both counts, a line each."""
    return (
        f"{amount(row.l0_pixels, 'pixels', row.l0_pixels_percent)}\n"
        f"{amount(row.l0_elements, 'elements', row.l0_elements_percent)}"
    )


def amount(count: int, unit: str, percent: float) -> str:
    """For instance "15 pixels (0.030 %)"."""
    return f"{count} {unit if count != 1 else unit.removesuffix('s')} ({share(percent)})"


def share(percent: float) -> str:
    """A percentage with two digits that count, and no more than three places."""
    places = (
        0
        if percent >= 9.95 or percent == 0
        else 1
        if percent >= 0.995
        else 2
        if percent >= 0.0995
        else 3
    )
    return f"{percent:.{places}f} %"


def signed(number: float) -> str:
    """With its sign and two places; zero has a plus."""
    return f"{round(number, 2) + 0.0:+.2f}"


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.0f} s"


def fitted(text: str, width: int) -> str:
    """Broken into lines between words; a word that is wider loses its middle."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(cut(line, width) for line in lines).replace(FIXED, " ")


def cut(text: str, width: int) -> str:
    """At most so wide: the beginning and the longer end, which has the number of a picture."""
    head = (width - 1) // 3
    return text if len(text) <= width else f"{text[:head]}…{text[head + 1 - width :]}"


def folded(text: str, width: int = 26, lines: int = 2) -> str:
    """Broken into a few lines; what does not fit ends in an ellipsis."""
    return textwrap.fill(text, width, max_lines=lines, placeholder=" …")
