"""What the pages at the top say is what the package is."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from PIL import Image
from test_architecture import RANKS, SOURCE

import pinprick
from pinprick.attacks import ATTACKS
from pinprick.cli import app
from pinprick.report.docs_tables import attack_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/reference/checks.md",
    "docs/reference/commands.md",
    "docs/reference/data.md",
    "docs/reference/metrics.md",
    "docs/reference/models.md",
    "docs/how_to/explain.md",
    "docs/how_to/evaluate_a_defence.md",
    "docs/how_to/own_model.md",
    "docs/how_to/pictures.md",
    "docs/how_to/benchmark.md",
    "docs/how_to/many_gpus.md",
    "docs/how_to/read_a_report.md",
    "docs/how_to/resume.md",
    "docs/how_to/web.md",
    "docs/methods/egs_tssa.md",
    "docs/methods/sparse_pgd.md",
    "docs/how_to/robust_model.md",
    "docs/how_to/scores_only.md",
    "docs/cards/README.md",
    "docs/how_to/which_attack.md",
    "docs/results/leaderboard.md",
    "docs/results/paper.md",
    "docs/results/paper_claims.md",
    "docs/results/paper_figures.md",
    "docs/results/paper_table1.md",
    "docs/results/paper_table2.md",
    "docs/results/paper_table3.md",
    "docs/results/paper_table4.md",
)


def test_the_table_of_attacks_is_made_from_the_cards() -> None:
    text = (ROOT / "docs" / "methods" / "README.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- table of attacks -->\n(.*?)\n<!-- end of table -->", text, re.DOTALL)
    assert table is not None
    assert table[1] == attack_table(), "out of step; run scripts/docs table"


def test_a_line_of_the_table_holds_the_facts_of_one_card() -> None:
    table, _, addresses = attack_table().partition("\n\n")
    lines = table.splitlines()
    assert len(lines) == len(ATTACKS) + 2
    assert max(map(len, lines)) <= 160
    assert (
        "| [`deepfool`](deepfool.md) | DeepFool | l2 | minimal | no | 100 + 450 "
        "| [arXiv:1511.04599] |"
    ) in lines
    assert (
        "| [`greedy`](greedy.md) | Greedy pixels | l0, pixels | minimal | yes | 501 + 500 "
        "| our own |"
    ) in lines
    assert (
        "| [`sapf`](sapf.md) | SAPF | l0, elements | budget | yes | 30000 + 30000 | ECCV 2020 |"
        in lines
    )
    assert (
        "| [`sigma_zero`](sigma_zero.md) | σ-zero | l0, elements or pixels | minimal | yes "
        "| 1000 + 1000 | [arXiv:2402.01879] |"
    ) in lines
    linked = set(re.findall(r"\[(arXiv:[^]]+)\] \|$", table, re.MULTILINE))
    assert linked == set(re.findall(r"^\[(\S+)\]: https", addresses, re.MULTILINE))


def test_the_pictures_are_there_and_not_heavy() -> None:
    paths = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert len(paths) == 2
    assert README.index(paths[0]) < 500  # on the first screen
    for path in paths:
        assert (ROOT / path).stat().st_size < 500_000
        with Image.open(ROOT / path) as picture:
            picture.load()
            assert min(picture.size) > 300


def test_scripts_that_pages_name_are_there_and_can_be_run() -> None:
    for page in SHELL_PAGES:
        for name in re.findall(r"\./(scripts/\w+)", (ROOT / page).read_text(encoding="utf-8")):
            assert (ROOT / name).stat().st_mode & 0o100, f"{page} names {name}"


def commands() -> list[str]:
    """The lines that call the program in blocks without a language."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in SHELL_PAGES]
    blocks = [
        block
        for text in texts
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
        if not language
    ]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("pinprick ")]


def test_there_are_commands_to_try() -> None:
    assert len(commands()) >= 6


@pytest.mark.parametrize("line", commands())
def test_a_command_of_a_page_is_one_that_the_shell_takes(line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    group = typer.main.get_command(app)
    assert name in group.commands, line  # type: ignore[attr-defined]
    command = group.commands[name]  # type: ignore[attr-defined]
    while hasattr(command, "commands"):  # bench run, data get
        name, *arguments = arguments
        assert name in command.commands, line
        command = command.commands[name]
    given = command.make_context(name, arguments).params
    for attack in [given.get("attack"), *(given.get("attacks") or "").split(",")]:
        assert not attack or attack.partition(":")[0] in ATTACKS, line


def test_the_rule_of_imports_is_the_one_that_is_tested() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = {
        name.removesuffix(".py").removesuffix("/"): int(rank)
        for rank, names in re.findall(r"^ ?(\d+)  ((?:\S+  ?)+)", text, re.M)
        for name in re.findall(r"\w+(?:\.py|/)(?=\s)", names)
    }
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    there = {name: rank for name, rank in RANKS.items() if name in rooms}
    assert listed == there


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {pinprick.__version__}\n" in text


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\n## [Unreleased]\n" in text
