"""The end of ``attack`` and ``compare``: the summary, its formats, and several seeds."""

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from cli.conftest import Run
from pinprick import load_result
from pinprick.threads import Threads

MODEL = ("--model", "cli_test_models:colours", "--figures", "0")
GREEDY = (*MODEL, "--attack", "greedy")
RANDOM = (*MODEL, "--attack", "sparse_rs", "--option", "k=12", "--option", "queries=30")


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Red by 1.96, 1.18 and 0.39 of the score: 11, 7 and 3 pixels are needed."""
    paths = []
    for number, red in enumerate((150, 130, 110)):
        paths.append(tmp_path / f"brick{number}.png")
        Image.new("RGB", (8, 8), (red, 100, 50)).save(paths[-1])
    return paths


def test_attack_ends_with_the_summary(run: Run, three: list[Path], tmp_path: Path) -> None:
    shell = run("attack", *three, *GREEDY)
    table, _, summary = shell.out.partition("Fooling rate and cost per image\n")
    needed = [row["needed_pixels"] for row in results(tmp_path / "pinprick-out")]
    assert table.count("brick") == 3
    assert "greedy  3 of 3          100.0 % [43.9, 100.0]" in summary
    assert f"greedy  {sorted(needed)[1]} [{min(needed)}, {max(needed)}]" in summary
    assert "Paired tests" not in summary
    written = json.loads((tmp_path / "pinprick-out" / "summary.json").read_text())
    assert written["seeds"] == [0]
    assert written["attacks"][0]["mean_pixels"]["value"] == pytest.approx(sum(needed) / 3)


def results(folder: Path) -> list[dict[str, int]]:
    images: list[dict[str, int]] = json.loads((folder / "result.json").read_text())["images"]
    return images


def test_one_picture_needs_no_summary(run: Run, picture: Path) -> None:
    assert "Wilson" not in run("attack", picture, *GREEDY).out
    assert "Wilson" not in run("compare", picture, *MODEL, "--attacks", "greedy,fgsm").out


def test_compare_ends_with_the_summary_and_the_paired_tests(run: Run, three: list[Path]) -> None:
    attacks = ("--attacks", "greedy,sparse_rs", "--option", "sparse_rs.k=1")
    shell = run("compare", *three, *MODEL, *attacks, "--option", "sparse_rs.queries=5")
    summary = shell.out.partition("Fooling rate and cost per image\n")[2]
    assert "sparse_rs  k=1, queries=5  3 of 3          0.0 % [0.0, 56.1]" in summary
    assert "greedy / sparse_rs  3       3 / 0                0.250" in summary


def test_the_same_attack_with_two_settings_has_two_rows(run: Run, three: list[Path]) -> None:
    attacks = ("--attacks", "sparse_rs,sparse_rs:quick", "--option", "sparse_rs.queries=5")
    text = run("compare", *three, *MODEL, *attacks, "--format", "csv").out
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["attack"], first["settings"]) == ("sparse_rs", "k=50, queries=5")
    assert (second["attack"], second["settings"]) == ("sparse_rs #2", "preset=quick, k=50")


@pytest.mark.parametrize("command", ["attack", "compare"])
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_a_format_prints_the_summary_alone(
    run: Run, three: list[Path], command: str, form: str
) -> None:
    name = "--attack" if command == "attack" else "--attacks"
    shell = run(command, *three, *MODEL, name, "greedy", "--format", form)
    assert shell.status == 0
    assert "brick" not in shell.out
    first = {
        "text": "Fooling rate and cost per image",
        "markdown": "Fooling rate and cost per image",
        "latex": "% Fooling rate and cost per image",
        "csv": "attack,model,settings,seeds,images,correct,",
    }[form]
    assert shell.out.startswith(first)
    if form == "csv":
        (row,) = csv.DictReader(io.StringIO(shell.out))
        assert (row["attack"], row["fooling_rate"], row["images"]) == ("greedy", "1.0", "3")


def test_each_seed_has_a_folder_as_if_it_had_been_run_alone(
    run: Run, three: list[Path], tmp_path: Path
) -> None:
    save = ("--save", "best.safetensors")
    shell = run("attack", *three, *RANDOM, "--seeds", "3,5", "--out", "made", *save)
    assert (shell.status, "brick" in shell.out) == (0, False)
    assert "± is the standard deviation over 2 seeds." in shell.out
    run("attack", *three, *RANDOM, "--seed", "5", "--out", "alone", "--save", "alone.safetensors")
    for name in ("forwards", "needed_pixels", "success"):
        alone = [row[name] for row in results(tmp_path / "alone")]
        assert [row[name] for row in results(tmp_path / "made" / "seed-5")] == alone
    assert load_result("best-seed-5.safetensors").seed == 5
    assert load_result("best-seed-3.safetensors").seed == 3
    summary = json.loads((tmp_path / "made" / "summary.json").read_text())
    assert (summary["seeds"], summary["attacks"][0]["seeds"]) == ([3, 5], 2)
    assert not (tmp_path / "made" / "result.json").exists()


def test_compare_takes_seeds_and_json_holds_all_of_them(run: Run, three: list[Path]) -> None:
    attacks = ("--attacks", "greedy,fgsm", "--seeds", "0,1", "--json")
    document = json.loads(run("compare", *three, *MODEL, *attacks).out)
    assert [each["seed"] for each in document["seeds"]] == [0, 1]
    assert [row["attack"] for row in document["summary"]["attacks"]] == ["greedy", "fgsm"]
    assert document["summary"]["pairs"][0]["images"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "0,x"), "--seeds takes whole numbers, as in 0,1,2; got 0,x"),
        (("--seeds", "1,1"), "each seed may be listed once; got 1,1"),
        (("--seeds", "1,2", "--seed", "3"), "give --seed or --seeds, not both"),
        (("--format", "latx"), "no format is called 'latx'; did you mean latex?"),
        (("--format", "csv", "--json"), "give --format or --json, not both"),
    ],
)
@pytest.mark.parametrize("command", ["attack", "compare"])
def test_what_does_not_fit_is_said_before_the_work(
    run: Run, picture: Path, tmp_path: Path, command: str, arguments: tuple[str, ...], message: str
) -> None:
    shell = run(command, picture, *MODEL, *arguments)
    assert (shell.status, shell.out) == (2, "")
    assert message in shell.err
    assert not (tmp_path / "pinprick-out").exists()


@pytest.mark.parametrize("output", [(), ("--json",), ("--format", "csv")])
def test_many_images_that_were_wrong_before_are_said_in_one_line(
    run: Run, three: list[Path], output: tuple[str, ...]
) -> None:
    arguments = ("attack", *three, *GREEDY, "--quiet", *output)
    assert run(*arguments, "--label", "red").err == ""
    shell = run(*arguments, "--label", "blue")
    assert shell.err.startswith(
        "pinprick: 3 of 3 images (100 %) are misclassified before the attack: check that the labels"
    )
    assert shell.err.count("\n") == 1
    if not output:
        assert "fooled 0 of 0 images that were classified correctly" in shell.out
        assert "greedy  0 of 3          -  " in shell.out


@pytest.mark.parametrize("command", ["attack", "compare"])
def test_tables_and_summaries_of_targeted_runs_name_the_target(
    run: Run, three: list[Path], tmp_path: Path, command: str
) -> None:
    name = "--attack" if command == "attack" else "--attacks"
    given = (command, *three, *MODEL, name, "greedy", "--target")
    shell = run(*given, "blue")
    assert shell.out.splitlines()[0].endswith("target blue")
    assert "\nFooling rate and cost per image, target blue\n" in shell.out
    assert "\nNeeded pixels, target blue\n" in shell.out
    Image.new("RGB", (8, 8), (50, 100, 130)).save(three[0])
    shell = run(*given, "least-likely")
    assert shell.out.splitlines()[0].endswith("target least-likely")
    assert shell.out.splitlines()[2].split()[:4] == ["picture", "label", "target", "before"]
    shell = run(*given, "least-likely", "--resume", "--format", "latex")
    assert shell.out.startswith("% Fooling rate and cost per image, target least-likely\n")
    assert json.loads((tmp_path / "pinprick-out" / "summary.json").read_text())["goal"]


def test_images_of_the_target_class_are_skipped_and_counted(
    run: Run, three: list[Path], tmp_path: Path
) -> None:
    sea = tmp_path / "sea.png"
    Image.new("RGB", (8, 8), (50, 100, 150)).save(sea)
    shell = run("attack", sea, *three, *GREEDY, "--target", "blue")
    assert shell.status == 0
    assert shell.err.count("skipped 1 image labelled blue already\n") == 1
    names = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())["images"]
    assert [one["name"] for one in names] == ["brick0", "brick1", "brick2"]
    listed = "".join(
        f"{path.name},{name}\n"
        for path, name in zip([*three, sea], ["red"] * 3 + ["blue"], strict=True)
    )
    (tmp_path / "list.csv").write_text(f"file,label\n{listed}")
    shell = run(
        "compare", "--data", "csv:list.csv", *MODEL, "--attacks", "greedy", "--target", "blue"
    )
    assert (shell.status, shell.out.count("0-brick0"), "3-sea" in shell.out) == (0, 1, False)
    assert "skipped 1 image labelled blue already" in shell.err
    shell = run("attack", "--data", "csv:list.csv[class=blue]", *GREEDY, "--target", "blue")
    assert (shell.status, "there is no image to attack: 1 image labelled blue" in shell.err) == (
        2,
        True,
    )


def test_a_file_without_its_form_gets_a_hint(run: Run) -> None:
    shell = run("attack", "--data", "pics/list.csv[0:3]", *GREEDY)
    line = "pinprick: pics/list.csv is a file: write csv:pics/list.csv[0:3]\n"
    assert (shell.status, shell.err) == (2, line)


@pytest.mark.parametrize("command", ["attack", "compare"])
def test_the_last_line_names_the_files_that_were_made(
    run: Run, three: list[Path], command: str
) -> None:
    name = "--attack" if command == "attack" else "--attacks"
    made = {"attack": "pictures and result.json are", "compare": "compare.json is"}[command]
    given = (command, *three, *MODEL, name, "greedy")
    assert run(*given).err == f"{made} in pinprick-out\n"
    assert run(*given, "--seeds", "0,7").err.splitlines() == [
        "seed 0, 1 of 2",
        "seed 7, 2 of 2",
        f"{made} in pinprick-out/seed-N per seed, summary.json is in pinprick-out",
    ]


@pytest.mark.parametrize("command", ["attack", "compare"])
def test_threads_are_measured_once_for_all_seeds(
    run: Run, three: list[Path], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    counts: list[int | None] = []

    def choose(*_: object, count: int | None, batch_size: int | None) -> Threads:
        counts.append(count)
        return Threads(1, 1)

    monkeypatch.setattr("pinprick.jobs.attack_group.choose_threads", choose)
    name = "--attack" if command == "attack" else "--attacks"
    run(command, *three, *MODEL, name, "greedy", "--seeds", "0,1,2")
    assert (counts[0], None in counts[1:], len(counts)) == (None, False, 3)
