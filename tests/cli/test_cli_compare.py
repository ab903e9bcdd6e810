"""``pinprick compare`` sets attacks side by side, and a judge may have a say."""

import json
from pathlib import Path

import pytest
from PIL import Image

from cli.conftest import Run

MODEL = ("--model", "cli_test_models:colours")


def test_prints_a_line_for_each_picture_and_attack(run: Run, picture: Path) -> None:
    shell = run("compare", picture, *MODEL, "--attacks", "ifgsm, greedy")
    assert shell.status == 0
    lines = [line for line in shell.out.splitlines() if "brick" in line]
    assert ["ifgsm" in lines[0], "greedy" in lines[1], len(lines)] == [True, True, 2]
    assert "11 (17 %)" in lines[1]
    assert "64 (100 %)" in lines[0]
    assert shell.err == "figures and compare.json are in pinprick-out\n"


def test_writes_a_figure_and_every_number(run: Run, picture: Path, tmp_path: Path) -> None:
    shell = run("compare", picture, *MODEL, "--attacks", "greedy,fgsm", "--out", "made", "--json")
    document = json.loads(shell.out)
    assert document == json.loads((tmp_path / "made" / "compare.json").read_text())
    assert [attack["name"] for attack in document["attacks"]] == ["greedy", "fgsm"]
    (entry,) = document["images"]
    assert [column["attack"] for column in entry["attacks"]] == ["greedy", "fgsm"]
    assert entry["attacks"][0]["l0_pixels"] == 11
    with Image.open(tmp_path / "made" / entry["figure"]) as figure:
        assert figure.width > figure.height > 500


@pytest.mark.slow
def test_settings_other_than_the_default_stand_beside_the_name(run: Run, picture: Path) -> None:
    arguments = ("compare", picture, *MODEL, "--attacks", "sparse_rs,sparse_rs:quick,greedy")
    settings = ("--option", "sparse_rs.k=smallest", "--option", "sparse_rs.queries=20")
    shell = run(*arguments, *settings)
    lines = [line for line in shell.out.splitlines() if "brick" in line]
    assert "sparse_rs, k=smallest, queries=20 " in lines[0]
    assert "sparse_rs, preset=quick, k=50 " in lines[1]
    assert "greedy " in lines[2]
    (entry,) = json.loads(run(*arguments, *settings, "--json").out)["images"]
    named = [(column["attack"], column["settings"]) for column in entry["attacks"]]
    assert named == [
        ("sparse_rs", "k=smallest, queries=20"),
        ("sparse_rs", "preset=quick, k=50"),
        ("greedy", ""),
    ]


def test_a_judge_of_another_size_is_asked_too(run: Run, picture: Path) -> None:
    arguments = ("compare", picture, *MODEL, "--judge", "cli_test_models:small")
    shell = run(*arguments, "--attacks", "greedy", "--option", "greedy.max_pixels=40")
    assert " judge " in shell.out
    document = json.loads(run(*arguments, "--attacks", "greedy", "--json").out)
    assert document["judge"] == "small"
    assert document["images"][0]["judge"]["name"] == "r"
    assert document["images"][0]["attacks"][0]["judge"]["name"] in ("r", "g")


def test_targets_go_to_every_attack(run: Run, picture: Path) -> None:
    shell = run("compare", picture, *MODEL, "--attacks", "pgd,greedy", "--target", "blue", "--json")
    columns = json.loads(shell.out)["images"][0]["attacks"]
    assert [column["target_name"] for column in columns] == ["blue", "blue"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attacks", "greedy,grady"), "no attack is called 'grady'; did you mean greedy?"),
        (("--attacks", "greedy,greedy"), "the attack greedy is listed twice"),
        (("--attacks", "cw_l0:quik"), "preset of cw_l0 is called 'quik'; did you mean quick?"),
        (("--attacks", "greedy", "--option", "max_pixels=3"), "starts with one of its attacks"),
        (("--attacks", "greedy", "--option", "pgd.steps=3"), "as in greedy.key=value"),
        (("--attacks", "greedy,deepfool", "--target", "1"), "deepfool has no targeted form"),
        (("--judge", "cli_test_models:smal"), "did you mean small?"),
    ],
)
def test_what_does_not_fit_is_said_before_the_work(
    run: Run, picture: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    shell = run("compare", picture, *MODEL, *arguments)
    assert (shell.status, shell.out) == (2, "")
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1
    assert not list(tmp_path.glob("pinprick-out/*"))


def test_broken_files_are_named_and_the_others_compared(
    run: Run, picture: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    shell = run("compare", "broken.png", picture, *MODEL, "--attacks", "greedy")
    assert shell.status == 2
    assert "pinprick: broken.png: not a picture" in shell.err
    assert "fooled" in shell.out


def test_a_trace_is_written_where_it_is_asked_for(run: Run, picture: Path) -> None:
    shell = run("compare", picture, *MODEL, "--attacks", "greedy,fgsm", "--trace", "--json")
    (entry,) = json.loads(shell.out)["images"]
    for column in entry["attacks"]:
        first, *_, last = column["trace"]
        assert first["forwards"] == 0
        assert last["pixels"] == column["needed_pixels"]


@pytest.mark.parametrize(("count", "names"), [(0, [None, None]), (1, ["brick-compare.png", None])])
def test_figures_are_limited(
    run: Run, picture: Path, tmp_path: Path, count: int, names: list[str | None]
) -> None:
    Image.new("RGB", (8, 8), (120, 100, 50)).save(tmp_path / "clay.png")
    few = ("--attacks", "greedy", "--figures", str(count), "--json")
    document = json.loads(run("compare", picture, "clay.png", *MODEL, *few).out)
    assert [image["figure"] for image in document["images"]] == names
    assert len(list((tmp_path / "pinprick-out").glob("*.png"))) == count


def test_limits_hold_for_each_attack(run: Run, picture: Path) -> None:
    attacks = ("--attacks", "greedy,sparse_rs", "--option", "sparse_rs.k=1")
    arguments = ("compare", picture, *MODEL, *attacks)
    document = json.loads(run(*arguments, "--max-forwards", "2", "--json").out)
    columns = document["images"][0]["attacks"]
    assert [column["forwards"] for column in columns] == [2, 2]
    assert document["limits"]["max_forwards"] == 2
    assert document["limits"]["max_passes"] is None
    shell = run(*arguments, "--max-seconds", "0")
    assert "out of time: 0 of 2 cut short, 2 not attacked" in shell.out


def test_counts_of_the_other_unit_are_marked(run: Run, picture: Path) -> None:
    arguments = ("compare", picture, *MODEL, "--attacks", "greedy,sparsefool,jsma,fgsm")
    shell = run(*arguments)
    pixels, elements, others, dense = (
        line.split("passes")[0] for line in shell.out.splitlines() if "brick" in line
    )
    assert "11 (17 %) " in pixels
    assert pixels.count("†") == 1
    assert pixels.index("†") > pixels.index("11 (17 %)") + len("11 (17 %)")
    for line in (elements, others):
        assert line.index("†") < line.index(" %)", line.index(" %)") + 1)
    assert "†" not in dense
    assert "† sparsefool and jsma count elements: their pixels are not kept small\n" in shell.out
    assert "† greedy counts pixels: its elements are not kept small\n" in shell.out
    document = json.loads(run(*arguments, "--json").out)
    units = [column["unit"] for column in document["images"][0]["attacks"]]
    assert units == ["pixels", "elements", "elements", None]


def test_seconds_say_whether_they_are_shares_of_a_batch(run: Run, picture: Path) -> None:
    Image.new("RGB", (8, 8), (50, 100, 150)).save("sea.png")
    alone, together = (
        run("compare", picture, "sea.png", *MODEL, "--attacks", "fgsm", "--batch-size", size)
        for size in ("1", "2")
    )
    assert "seconds:" not in alone.out
    line = "seconds: time of the batch divided by its attacked images, up to 2 together; "
    assert f"{line}--batch-size 1 times each image\n" in together.out
