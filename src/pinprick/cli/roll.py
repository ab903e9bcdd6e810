"""Who is who among the pictures of a run: their labels, where these are from, what was left out."""

from dataclasses import dataclass, field

import typer

from pinprick.data.pictures import Unreadable


@dataclass(frozen=True, eq=False)
class Roll:
    """What is remembered of pictures when they themselves are gone.

    Attributes:
        label_from: Where each label comes from: "given", "known", "data" for its dataset, or
            "model" for the model's own guess.
        label_words: The same labels in words, with a star where they are the model's own guess.
        unreadable: Files that were set aside.
    """

    label_from: list[str] = field(default_factory=list)
    label_words: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    def add(self, more: "Roll") -> None:
        self.label_from.extend(more.label_from)
        self.label_words.extend(more.label_words)
        self.unreadable.extend(more.unreadable)

    def unreadable_files(self) -> list[dict[str, str]]:
        return [{"path": str(file.path), "reason": file.reason} for file in self.unreadable]


def print_note(roll: Roll) -> None:
    """What the star in a table means, if there is one."""
    if "model" in roll.label_from:
        typer.echo("* no label is known: the model's own clean prediction is taken for it")
