"""What ``pinprick train`` shows: a bar and a line an epoch on stderr, a table on stdout."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from pinprick.cli.console import print_table
from pinprick.train.loop import Tick
from pinprick.train.progress import Epoch
from pinprick.zoo.card import ModelCard
from pinprick.zoo.facts import l0_attack, linf_attack, overstatement, percent

Tell = Callable[[str], None]


@contextmanager
def show_epochs(
    title: str, epochs: int, done: Callable[[], int], *, quiet: bool
) -> Iterator[tuple[Tick, Tell]]:
    """What to call after each step, and with a line after each epoch; ``done`` epochs are over."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, markup=False, highlight=False)
    hidden = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(title, total=epochs)

        def tick(step: int, steps: int) -> None:
            bar.update(task, completed=done() + step / steps)

        def tell(line: str) -> None:
            if not quiet:
                console.print(line, soft_wrap=True)

        tell(title)
        yield tick, tell


def describe_epoch(epoch: Epoch) -> str:
    line = (
        f"epoch {epoch.number}: loss {epoch.loss:.3f}, accuracy {epoch.accuracy:.1%}, "
        f"robust accuracy {epoch.robust_accuracy:.1%}, {epoch.seconds:.0f} s"
    )
    if epoch.rolled_back:
        line += (
            f"; robust accuracy on training images fell to {epoch.watched:.1%}: "
            "taken back, and on with more care"
        )
    return line


def print_card(card: ModelCard) -> None:
    facts = card.facts
    pgd, strong = facts["pgd"], facts.get("strong_pgd")
    few = facts.get("l0_elements")
    rows = [
        ("accuracy", percent(facts["accuracy"]), str(facts["test_images"])),
        (f"accuracy under {linf_attack(pgd)}", percent(pgd["accuracy"]), str(pgd["images"])),
    ]
    if strong:
        images = str(strong["images"])
        rows += [
            (f"accuracy under {linf_attack(pgd)}", percent(strong["pgd_accuracy"]), images),
            (f"worst case with {linf_attack(strong)}", percent(strong["accuracy"]), images),
        ]
    if few:
        rows += [
            (f"accuracy with {k} elements changed", percent(share), str(few["images"]))
            for k, share in few["accuracy"].items()
        ]
    rows.append(("training time", f"{facts['seconds']:.1f} s", ""))
    print_table(("measured", ">value", ">test images"), rows)
    if few:
        typer.echo(f"elements changed: {l0_attack(facts)}")
    if sentence := overstatement(facts):
        typer.echo(f"{sentence}: do not trust PGD on this network")
