"""``pinprick attack`` prints what happened, and leaves files that say the same."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageChops

from cli.conftest import Run
from pinprick.report.png import read_png
from pinprick.zoo import load_model

MODEL = ("--model", "cli_test_models:colours", "--attack", "greedy")


def test_prints_a_table_of_what_it_took(run: Run, picture: Path, tmp_path: Path) -> None:
    shell = run("attack", picture, *MODEL)
    assert shell.status == 0
    head, *_, summary, note = [line for line in shell.out.splitlines() if line.strip()]
    assert head == "Greedy pixels on colours"
    for words in ("red *", "red 0.86", "green 0.5", "11 (17 %)", "22 (11 %)", "fooled"):
        assert words in shell.out
    (row,) = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())["images"]
    assert f" {row['forwards']} + {row['backwards']} " in shell.out
    assert f" {row['seconds']:.2f} " in shell.out
    assert summary == "fooled 1 of 1 images that were classified correctly"
    assert note == "* the label is unknown: the model's clean prediction is used"
    assert shell.err == "pictures, figures and result.json are in pinprick-out\n"


def test_the_png_on_the_disk_still_fools(run: Run, picture: Path, tmp_path: Path) -> None:
    run("attack", picture, *MODEL, "--out", "made")
    image = read_png(tmp_path / "made" / "brick-adversarial.png")
    with torch.no_grad():
        assert load_model(MODEL[1])(image[None]).argmax() == 1
    with Image.open(tmp_path / "made" / "brick-figure.png") as figure:
        assert figure.width > 1000


def test_a_png_that_stops_fooling_is_said(run: Run, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), (100, 108, 9)).save(tmp_path / "edge.png")
    arguments = ("attack", "edge.png", "--model", "cli_test_models:fragile", "--attack", "ifgsm")
    shell = run(*arguments, "--option", "eps=0.0015", "--option", "step_size=none")
    assert "fooled, but not as PNG: warm" in shell.out
    (row,) = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())["images"]
    assert row["success"]
    assert not row["survives_8bit"]
    assert row["png"]["fools"] is False
    assert row["png"]["name"] == "warm"


def test_json_is_the_file_and_nothing_else(run: Run, picture: Path, tmp_path: Path) -> None:
    shell = run("attack", picture, *MODEL, "--json", "--quiet", "--seed", "7")
    document = json.loads(shell.out)
    assert document == json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert shell.err == ""
    assert document["attack"]["name"] == "greedy"
    assert (document["model"], document["seed"], document["device"]) == ("colours", 7, "cpu")
    (row,) = document["images"]
    assert (row["name"], row["label"], row["label_name"]) == ("brick", 0, "red")
    assert (row["label_from"], row["target"]) == ("model", None)
    assert (row["l0_pixels"], row["l0_elements"], row["needed_pixels"]) == (11, 22, 11)
    assert (row["forwards"], row["backwards"]) == (12, 12)
    assert document["robust_accuracy_curve"] == {
        "pixels": [[0, 1.0], [11, 0.0]],
        "elements": [[0, 1.0], [22, 0.0]],
    }
    assert row["files"] == {
        "adversarial": "brick-adversarial.png",
        "clean": "brick-clean.png",
        "figure": "brick-figure.png",
    }
    assert row["margin"] < 0


@pytest.mark.parametrize(
    ("target", "reached"),
    [("blue", "blue"), ("2", "blue"), ("least-likely", "blue"), ("1", "green")],
)
def test_a_target_is_a_number_words_or_the_least_likely(
    run: Run, picture: Path, target: str, reached: str
) -> None:
    shell = run("attack", picture, *MODEL, "--target", target, "--json")
    (row,) = json.loads(shell.out)["images"]
    assert row["target_name"] == row["adversarial"]["name"] == reached
    assert row["success"]


def test_a_given_label_that_the_model_misses_is_not_attacked(run: Run, picture: Path) -> None:
    shell = run("attack", picture, *MODEL, "--label", "Blue")
    assert "already wrong" in shell.out
    assert "fooled 0 of 0 images that were classified correctly" in shell.out
    assert "*" not in shell.out


def test_settings_reach_the_attack(run: Run, picture: Path) -> None:
    shell = run("attack", picture, *MODEL, "--option", "max_pixels=10", "--json")
    document = json.loads(shell.out)
    assert document["attack"]["max_pixels"] == 10
    assert document["images"][0]["remark"] == "not found"
    assert document["images"][0]["needed_pixels"] is None


def test_broken_files_are_named_and_the_others_attacked(
    run: Run, picture: Path, tmp_path: Path
) -> None:
    whole = picture.read_bytes()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "half.png").write_bytes(whole[:40])
    (tmp_path / "photos" / "notes.txt").write_text("hello")
    picture.rename(tmp_path / "photos" / "whole.png")
    shell = run("attack", "photos", "gone.png", *MODEL, "--quiet", "--json")
    assert shell.status == 2
    document = json.loads(shell.out)
    assert [row["name"] for row in document["images"]] == ["whole"]
    assert document["images"][0]["success"]
    names = [Path(file["path"]).name for file in document["unreadable"]]
    assert names == ["half.png", "notes.txt", "gone.png"]
    assert shell.err.splitlines() == [
        "pinprick: photos/half.png, photos/notes.txt: "
        "not a picture, or of a kind that cannot be read",
        "pinprick: gone.png: there is no such file",
    ]
    assert "gone.png: there is no such file" in shell.err


def test_what_was_decided_about_a_picture_is_said(run: Run, tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (200, 0, 0, 128)).save(tmp_path / "glass.png")
    shell = run("attack", "glass.png", *MODEL)
    assert "glass.png: transparent, put on white" in shell.err
    assert "transparent" not in run("attack", "glass.png", *MODEL, "--quiet").err


def test_a_batch_gives_each_picture_its_own_row(run: Run, tmp_path: Path) -> None:
    for name, colour in {"a": (150, 100, 50), "b": (10, 20, 200), "c": (90, 91, 92)}.items():
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{name}.png")
    arguments = ("attack", "a.png", "b.png", "c.png", *MODEL, "--json")
    together = json.loads(run(*arguments, "--batch-size", "3").out)["images"]
    alone = json.loads(run(*arguments, "--batch-size", "1").out)["images"]
    assert [row["batch_size"] for row in together + alone] == [3, 3, 3, 1, 1, 1]
    assert [row["l0_pixels"] for row in together] == [row["l0_pixels"] for row in alone]


@pytest.mark.slow
def test_the_photographs_of_the_demo_are_the_default(run: Run) -> None:
    shell = run("attack", *MODEL, "--attack", "fgsm", "--json")
    rows = json.loads(shell.out)["images"]
    names = ["chelsea", "coffee", "camera", "rocket", "motorcycle"]
    assert [row["name"] for row in rows] == names
    assert {row["label_from"] for row in rows} == {"model"}  # other classes than ImageNet's


@pytest.mark.slow
def test_the_embedded_model_is_fooled_and_knows_known_labels(run: Run, tmp_path: Path) -> None:
    shell = run("attack", "--attack", "ifgsm", "--option", "steps=3", "--json")
    rows = {row["name"]: row for row in json.loads(shell.out)["images"]}
    assert rows["coffee"]["label_from"] == rows["camera"]["label_from"] == "known"
    assert rows["chelsea"]["label_from"] == "model"
    assert rows["chelsea"]["label_name"] == "tiger cat"
    assert all(row["success"] and row["png"]["fools"] for row in rows.values())
    assert len(list((tmp_path / "pinprick-out").glob("*-adversarial.png"))) == 5


def test_an_attack_without_stages_says_nothing_of_them(run: Run, picture: Path) -> None:
    shell = run("attack", picture, *MODEL)
    assert "robust accuracy" not in shell.out
    assert "stage" not in shell.out


def test_a_trace_is_written_where_it_is_asked_for(run: Run, picture: Path, tmp_path: Path) -> None:
    run("attack", picture, *MODEL)
    path = tmp_path / "pinprick-out" / "result.json"
    (row,) = json.loads(path.read_text())["images"]
    assert row["trace"] is None
    run("attack", picture, *MODEL, "--trace")
    (row,) = json.loads(path.read_text())["images"]
    first, *_, last = row["trace"]
    assert (first["forwards"], first["pixels"], first["elements"]) == (0, None, None)
    assert first["margin"] > 0 > last["margin"]
    assert (last["pixels"], last["elements"]) == (row["needed_pixels"], row["needed_elements"])
    assert last["forwards"] == row["forwards"]


@pytest.mark.slow
def test_auto_names_its_stages_and_flags_what_scores_alone_found(
    run: Run, picture: Path, tmp_path: Path
) -> None:
    settings = ("budgets=4,20", "effort=fast", "steps=10", "queries=300")
    few = ["--attack", "auto", *(f"--option={setting}" for setting in settings)]
    path = tmp_path / "pinprick-out" / "result.json"
    shell = run("attack", picture, "--model", "cli_test_models:colours", *few)
    assert "fooled by pinprick" in shell.out
    assert "scores_beat_gradients" not in shell.out
    line = "robust accuracy: 100 % at 4 pixels (1 of 1), 0 % at 20 pixels (0 of 1)"
    assert line in shell.out.splitlines()
    document = json.loads(path.read_text())
    assert document["flags"] == []
    withstand = [(one["budget"], one["withstand"]) for one in document["robust_accuracy"]]
    assert withstand == [(4, 1), (20, 0)]
    for name in ("second", "third"):
        (tmp_path / f"{name}.png").write_bytes(picture.read_bytes())
    pictures = (picture, tmp_path / "second.png", tmp_path / "third.png")
    shell = run("attack", *pictures, "--model", "cli_test_models:misleading", *few)
    assert shell.status == 0
    assert "fooled by sparse_rs" in shell.out
    line = "scores_beat_gradients: score search found fewer than gradient search on 3 of 3 images;"
    assert line in shell.out
    document = json.loads(path.read_text())
    assert [flag["name"] for flag in document["flags"]] == ["scores_beat_gradients"]
    row = document["images"][0]
    assert row["beaten_by_scores"]
    assert row["found_by"] == "sparse_rs"
    assert sum(forwards for forwards, _ in row["stages"].values()) == row["forwards"]
    stages = document["stages"]
    for count in ("forwards", "backwards"):
        spent = sum(row[count] for row in document["images"])
        assert sum(stage[count] for stage in stages.values()) == spent
    assert {name: stage["found"] for name, stage in stages.items()} == {
        "pinprick": 0,
        "sparse_pgd": 0,
        "sparse_rs": 3,
        "pinprick_again": 0,
    }
    told = f"sparse_rs {stages['sparse_rs']['forwards']} + 0 3"
    assert told in [" ".join(line.split()) for line in shell.out.splitlines()]


def test_limits_hold_for_every_attack(run: Run, picture: Path) -> None:
    for settings in (
        ("greedy",),
        ("sparse_rs", "--option", "k=1"),
        ("pgd", "--option", "eps=0.01"),
    ):
        arguments = ("attack", picture, *MODEL, "--attack", *settings, "--figures", "0", "--json")
        few = ("--max-forwards", "3", "--max-backwards", "2")
        document = json.loads(run(*arguments, *few).out)
        (row,) = document["images"]
        assert (row["forwards"], row["backwards"] <= 2) == (3, True)
        assert (row["out_of_budget"], row["out_of_time"]) == (True, False)
        assert document["attack"]["limits"] == {"max_forwards": 3, "max_backwards": 2}
        (row,) = json.loads(run(*arguments, "--max-passes", "3").out)["images"]
        assert row["forwards"] + row["backwards"] == 3
        assert row["out_of_budget"]


def test_no_time_is_said_and_nothing_is_attacked(run: Run, picture: Path) -> None:
    arguments = ("attack", picture, *MODEL, "--attack", "greedy", "--max-seconds", "0")
    shell = run(*arguments)
    assert shell.status == 0
    assert "out of time: 0 of 1 cut short, 1 not attacked" in shell.out
    (row,) = json.loads(run(*arguments, "--json").out)["images"]
    assert (row["remark"], row["out_of_time"], row["forwards"]) == ("out of time", True, 0)
    assert "out of time" not in run(*arguments[:-1], "1000").out


def test_a_mask_says_which_pixels_may_change(run: Run, picture: Path, tmp_path: Path) -> None:
    mask = Image.new("L", (8, 8), 0)
    mask.paste(255, (0, 0, 5, 8))
    mask.save(tmp_path / "mask.png")
    command = (*MODEL, "--figures", "0", "--quiet", "--json")
    shell = run("attack", picture, *command, "--mask", "mask.png")
    assert shell.status == 0
    document = json.loads(shell.out)
    assert (document["mask"], document["images"][0]["success"]) == ("mask.png", True)
    with Image.open("pinprick-out/brick-adversarial.png") as adversarial, Image.open(picture) as it:
        box = ImageChops.difference(adversarial, it).getbbox()
    assert box is not None
    assert box[2] <= 5
    mask.resize((5, 5)).save(tmp_path / "small.png")
    refused = run("attack", picture, *command, "--mask", "small.png")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith(
        "pinprick: the mask small.png has 5 x 5 pixels, but the model sees"
    )


@pytest.mark.parametrize("command", ["attack", "compare"])
def test_outputs_that_are_probabilities_are_remarked_on(
    run: Run, picture: Path, command: str
) -> None:
    attack = ("--attack" if command == "attack" else "--attacks", "greedy", "--figures", "0")
    shell = run(command, picture, "--model", "cli_test_models:soft", *attack)
    assert shell.err.count("soft: the outputs of every image lie in [0, 1] and add up to 1; ") == 1
    assert "probabilities=True to score_model" in shell.err
    assert "add up to 1" not in run(command, picture, *MODEL, *attack).err


def test_a_speed_that_cannot_be_kept_is_remarked_on_once(
    run: Run, picture: Path, tmp_path: Path
) -> None:
    shell = run("attack", picture, picture, *MODEL, "--speed", "fast", "--batch-size", "1")
    remark = "fast speed was not kept: passes are recorded on a GPU only, not on cpu\n"
    assert shell.err.count(remark) == 1
    found = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert found["speed"] == "fast"


def test_a_speed_that_there_is_not_is_refused(run: Run, picture: Path) -> None:
    shell = run("attack", picture, *MODEL, "--speed", "faster")
    assert shell.status == 2
    assert "speed must be exact, graphs, fast or compiled, got 'faster'" in shell.err
