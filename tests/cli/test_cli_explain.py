"""``pinprick explain`` tells what each changed pixel does, and what holds over a dataset."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from cli.conftest import Run
from pinprick.explain.noise.changes import load_changes, rebuild
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.totals import Totals
from pinprick.jobs.explain_batches import choose_figures
from pinprick.report.png import read_png
from pinprick.zoo.prepare import short_side_and_crop

CONVOLUTIONS = '''
import torch
from torch import nn

from pinprick import Classifier
from pinprick.zoo.prepare import short_side_and_crop


def _net(bend):
    """Each plane of the layer sees one channel, and each class one plane."""
    see = nn.Conv2d(3, 3, 1, bias=False)
    see.weight.data = torch.eye(3).view(3, 3, 1, 1)
    weigh = nn.Linear(3, 3, bias=False)
    weigh.weight.data = 10 * torch.eye(3)
    return nn.Sequential(see, bend, nn.AdaptiveAvgPool2d(1), nn.Flatten(), weigh).eval()


def _model(bend, name):
    return Classifier(
        _net(bend),
        classes=("red", "green", "blue"),
        size=(8, 8),
        prepare=short_side_and_crop(8, 8),
        name=name,
    )


def relus():
    return _model(nn.ReLU(), "relus")


def gelus():
    return _model(nn.GELU(), "gelus")


def zeros():
    """Every class counts against what its plane sees, so every map is zero."""
    model = _model(nn.ReLU(), "zeros")
    model.net[4].weight.data = 10 * (torch.eye(3) - 1.5)
    return model


def wordy():
    model = relus()
    names = ("Chesapeake Bay retriever of a very Northamptonshire-like kind", "b", "c")
    return Classifier(
        model.net, classes=names, size=(8, 8), prepare=model.prepare, name="wordy"
    )


def flat():
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval()
    return Classifier(net, size=(8, 8), prepare=short_side_and_crop(8, 8), name="flat")


def scores():
    model = relus()
    return Classifier(model.net, size=(8, 8), prepare=model.prepare, access="scores", name="scores")


def tops():
    model = relus()
    return Classifier(model.net, size=(8, 8), prepare=model.prepare, access="labels", name="tops")
'''
MODEL = ("--model", "cli_explain_models:relus")
GREEDY = (*MODEL, "--attack", "greedy")
FEW = ("--figures", "0")  # they take the time
COLOURS = ((150, 100, 50), (90, 160, 30), (20, 60, 200))


@pytest.fixture(autouse=True)
def models(tmp_path: Path) -> None:
    (tmp_path / "cli_explain_models.py").write_text(CONVOLUTIONS)
    values = [[value + 2 * turn for value in colour] for turn in range(2) for colour in COLOURS]
    images = torch.tensor(values, dtype=torch.uint8).view(6, 3, 1, 1).expand(6, 3, 8, 8)
    tensors = {"images": images.contiguous(), "labels": torch.arange(6) % 3}
    save_file(tensors, tmp_path / "six.safetensors")


def test_prints_a_line_for_each_picture(run: Run, picture: Path) -> None:
    shell = run("explain", picture, *GREEDY, *FEW)
    assert shell.status == 0
    attacked, explained = [line for line in shell.out.splitlines() if "brick" in line]
    assert attacked.rstrip().endswith("fooled")
    assert "11 (17 %)" in explained
    assert "none" in explained.split()  # every pixel is needed
    assert "fooled 1 of 1 images that were classified correctly" in shell.out
    assert "\npolishing finished: n = 1 images\n" in shell.out
    assert "95 %" not in shell.out  # one picture is no dataset
    assert shell.err == "explanation.json is in pinprick-out\n"


def test_writes_every_number(run: Run, picture: Path, tmp_path: Path) -> None:
    shell = run("explain", picture, *GREEDY, *FEW, "--json", "--grouping", "pixels")
    document = json.loads(shell.out)
    assert document == json.loads((tmp_path / "pinprick-out" / "explanation.json").read_text())
    assert document["totals"] is None
    assert document["layer"] == "1"
    assert document["settings"] == asdict(NoiseSettings(grouping="pixels"))
    assert document["attack"]["polished"] == "pixels"
    (image,) = document["images"]
    told = Explanation.from_dict(image["explanation"])
    assert (told.status, told.changed_pixels, len(told.groups)) == ("fooled", 11, 11)
    assert told.obscuring + told.leading == pytest.approx(told.margin)
    assert told.maps is not None
    assert (image["label_name"], image["rival_name"]) == ("red", "green")
    assert image["files"] == {
        "adversarial": "brick-adversarial.png",
        "changes": None,
        "figure": None,
        "effects": None,
    }


@pytest.mark.parametrize("listed", [1024, 3])
def test_what_was_explained_can_be_rebuilt_from_the_folder(
    run: Run, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr("pinprick.jobs.explain_files._LISTED", listed)
    run("explain", picture, *GREEDY, *FEW)
    folder = tmp_path / "pinprick-out"
    (image,) = json.loads((folder / "explanation.json").read_text())["images"]
    told, files = Explanation.from_dict(image["explanation"]), image["files"]
    assert (files["changes"] is None) == (listed == 1024)
    if files["changes"] is not None:
        told = load_changes(told, folder / files["changes"])
    with Image.open(picture) as opened:
        clean = short_side_and_crop(8, 8)(opened)
    adversarial = rebuild(told, clean)
    assert int((adversarial != clean).any(dim=0).sum()) == told.changed_pixels == 11
    rounded = (adversarial * 255).round() / 255
    assert torch.equal(rounded, read_png(folder / files["adversarial"]))


def test_sampling_can_be_cut_short_or_made_longer(run: Run, picture: Path) -> None:
    pixels = ("explain", picture, *GREEDY, *FEW, "--json", "--grouping", "pixels")
    for pairs, drawn in (4, 4), (24, 16):  # effects that are the same in all orders need no more
        shell = run(*pixels, "--error", "0.01", "--max-pairs", pairs)
        document = json.loads(shell.out)
        assert document["settings"]["error"] == 0.01
        assert document["settings"]["max_pairs"] == pairs
        assert document["images"][0]["explanation"]["pairs"] == drawn
    assert run(*pixels, "--max-pairs", "1").status == 2


def test_a_dataset_has_totals(run: Run) -> None:
    arguments = ("explain", *GREEDY, *FEW, "--data", "tensors:six.safetensors", "--limit", "5")
    document = json.loads(run(*arguments, "--json", "--quiet").out)
    totals = Totals.from_dict(document["totals"])
    assert (totals.images, totals.explained, totals.failed) == (5, 5, 0)
    assert [image["name"] for image in document["images"]] == [f"six-{i}" for i in range(5)]
    assert sum(one.share.value for one in totals.kinds) == pytest.approx(1)
    said = run(*arguments, "--quiet").out
    assert "5 of 5 images were fooled and explained, 0 attacks failed, 0 images needed" in said
    assert "images in which polishing finished: 100 % (100 to 100), n = 5" in said
    assert "obscuring groups on the map of the true class: " in said
    for words in ("by Shapley value", "obscuring alone", "place", "association", "shifts"):
        assert words in said
    kinds, rest = said.split("kind of group")[1].split("\nobscuring share of", 1)
    assert kinds.splitlines()[0].count(", n = 5") == 3  # one for each column
    shares = re.findall(r"\d+ % \(\d+ to \d+\)(?:, n = \d+)?", rest)
    assert len(shares) >= 6
    assert all(", n = " in share for share in shares)


@pytest.mark.slow
def test_tables_fit_100_columns_and_break_no_word(run: Run, tmp_path: Path) -> None:
    data = ("--data", "tensors:six.safetensors", "--limit", "3")
    name = "Chesapeake Bay retriever of a very Northamptonshire-like kind"
    for attack in ("greedy", "ifgsm"):
        more = ("--model", "cli_explain_models:wordy", "--attack", attack, *FEW)
        said = run("explain", *more, *data, "--quiet").out
        assert [line for line in said.splitlines() if len(line) > 100] == []
        found = set(re.split(r"[\s,]+", said))
        assert {"Chesapeake", "retriever"} <= found
        assert {word for word in found if len(word) > 3 and word in name} <= set(name.split())


def test_a_failed_attack_is_told_as_failed(run: Run) -> None:
    few = ("--option", "max_pixels=1")
    arguments = ("explain", *GREEDY, *few, *FEW, "--data", "tensors:six.safetensors", "--quiet")
    shell = run(*arguments)
    assert shell.status == 0
    assert sum(" failed: " in line for line in shell.out.splitlines()) == 6
    assert "0 of 6 images were fooled and explained, 6 attacks failed, 0 images" in shell.out
    document = json.loads(run(*arguments, "--json").out)
    assert {image["explanation"]["status"] for image in document["images"]} == {"failed"}
    assert document["totals"]["decided"]["value"] is None


@pytest.mark.slow
def test_a_dense_attack_is_explained_as_it_is(run: Run, picture: Path) -> None:
    dense = (*MODEL, "--attack", "ifgsm", "--option", "eps=0.2", "--option", "step_size=none")
    for more, pixels in ((), 64), (("--polish",), 11):
        shell = run("explain", picture, *dense, *FEW, "--json", *more)
        told = json.loads(shell.out)["images"][0]["explanation"]
        assert (told["changed_pixels"] < 64) == (pixels < 64)
        assert told["polished"] == ("pixels" if more else "")
        assert len(told["groups"]) > 8  # by place; as neighbours all pixels would be one


def test_a_model_without_layers_has_effects_but_no_maps(run: Run, picture: Path) -> None:
    scores = ("--model", "cli_explain_models:scores", "--attack", "sparse_rs")
    settings = ("--option", "k=16", "--option", "queries=200")
    shell = run("explain", picture, *scores, *settings, *FEW, "--json")
    assert shell.status == 0
    assert "scores shows no layers: explained without maps" in shell.err
    document = json.loads(shell.out)
    assert document["layer"] is None
    told = document["images"][0]["explanation"]
    assert told["groups"]
    assert told["maps"] is None


def test_maps_can_be_left_out_or_taken_from_another_layer(run: Run, picture: Path) -> None:
    for layer, found in ("none", None), ("0", "0"):
        shell = run("explain", picture, *GREEDY, *FEW, "--layer", layer, "--json")
        assert json.loads(shell.out)["layer"] == found


def test_the_map_is_layercam_for_small_pictures_unless_asked(run: Run, picture: Path) -> None:
    for more, found in ((), "LayerCAM"), (("--map", "gradcam"), "Grad-CAM"):
        shell = run("explain", picture, *GREEDY, *FEW, "--json", *more)
        assert json.loads(shell.out)["map"] == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attack", "grady"), "no attack is called 'grady'; did you mean greedy?"),
        (("--grouping", "pixel"), "must be one of 'connected', 'pixels', got 'pixel'"),
        (("--map", "cam"), "must be one of 'auto', 'gradcam', 'layercam', got 'cam'"),
        (("--layer", "conv9"), "no layer is called 'conv9'"),
        (("--limit", "3"), "--limit is for --data"),
    ],
)
def test_what_does_not_fit_is_one_line(
    run: Run, picture: Path, arguments: tuple[str, ...], message: str
) -> None:
    shell = run("explain", picture, *GREEDY, *FEW, "--quiet", *arguments)
    assert (shell.status, shell.out) == (2, "")
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1


def test_a_network_without_maps_is_told_before_it_is_attacked(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat = ("--model", "cli_explain_models:flat", "--attack", "greedy", *FEW)
    assert run("explain", picture, *flat, "--layer", "none").status == 0
    monkeypatch.setattr(
        "pinprick.jobs.attack_group.attack_batches", lambda *_, **__: pytest.fail("attacked")
    )
    for layer, end in (
        ((), "; --layer none explains without maps\n"),
        (("--layer", "1"), "; --layer none explains without maps\n"),
        (("--layer", "conv9"), "no layer is called 'conv9'; known: 0, 1\n"),
    ):
        shell = run("explain", picture, *flat, *layer)
        assert (shell.status, shell.out) == (2, "")
        assert shell.err.endswith(end)


def test_a_model_that_gives_too_little_is_told_before_it_is_attacked(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pinprick.jobs.attack_group.attack_batches", lambda *_, **__: pytest.fail("attacked")
    )
    model = ("--model", "cli_explain_models:tops", "--attack", "sparse_rs")
    shell = run("explain", picture, *model, *FEW)
    assert (shell.status, shell.out) == (2, "")
    assert "an explanation needs scores, but tops gives labels alone; attack it " in shell.err


def test_polishing_that_is_cut_off_is_said(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinprick.explain.explain_result.POLISH_PASSES", 3)
    shell = run("explain", picture, *GREEDY, *FEW)
    stopped = "\npolishing stopped after 3 forward passes in"
    assert f"{stopped} 1 of 1 images: each changed pixel is needed\n" in shell.out  # all tried
    monkeypatch.setattr(
        "pinprick.explain.noise.explain_noise.spare_pixels", lambda a, met, _: -met.long()
    )
    shell = run("explain", picture, *GREEDY, *FEW)
    assert f"{stopped} 1 of 1 images: at most 11 pixels are not needed\n" in shell.out
    data = ("--data", "tensors:six.safetensors", "--limit", "2")
    said = run("explain", *GREEDY, *FEW, *data).out
    assert f"{stopped} 2 of 2 images: at most " in said
    assert "images in which polishing finished: 0 % (0 to 0), n = 2" in said


def test_figures_of_a_dataset_are_drawn_by_lot() -> None:
    lot = choose_figures(None, 100, dataset=True, seed=0)
    assert len(lot) == 8
    assert lot < set(range(100))
    assert lot == choose_figures(None, 100, dataset=True, seed=0)
    assert lot != choose_figures(None, 100, dataset=True, seed=1)
    assert choose_figures(None, 5, dataset=True, seed=0) == set(range(5))
    assert choose_figures(0, 5, dataset=True, seed=0) == set()
    assert choose_figures(None, 100, dataset=False, seed=0) == set(range(100))
    assert choose_figures(3, 100, dataset=False, seed=0) == {0, 1, 2}


def test_maps_of_zeros_are_counted_and_left_out(run: Run) -> None:
    zeros = ("--model", "cli_explain_models:zeros", "--attack", "greedy", *FEW)
    shell = run("explain", *zeros, "--data", "tensors:six.safetensors", "--limit", "2")
    assert "\n4 maps were zero everywhere: left out\n" in shell.out
    assert "effect \\ place" not in shell.out


@pytest.mark.slow
def test_pinprick_searches_quickly_unless_told_otherwise(run: Run, picture: Path) -> None:
    for more, effort in ((), "fast"), (("--option", "effort=balanced"), "balanced"):
        shell = run("explain", picture, *MODEL, *FEW, "--json", *more)
        assert json.loads(shell.out)["attack"]["effort"] == effort


@pytest.mark.slow
def test_pinprick_takes_its_time_where_there_is_a_target(run: Run, picture: Path) -> None:
    shell = run("explain", picture, *MODEL, *FEW, "--json", "--target", "least-likely")
    assert json.loads(shell.out)["attack"]["effort"] == "balanced"


def test_broken_files_are_named_and_the_others_explained(
    run: Run, picture: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    shell = run("explain", "broken.png", picture, *GREEDY, *FEW)
    assert shell.status == 2
    assert "pinprick: broken.png: not a picture" in shell.err
    assert "fooled" in shell.out


@pytest.mark.slow
def test_the_command_writes_both_figures(run: Run, picture: Path, tmp_path: Path) -> None:
    shell = run("explain", picture, *GREEDY)
    assert shell.err == "figures and explanation.json are in pinprick-out\n"
    for name in ("brick-explained.png", "brick-effects.png"):
        with Image.open(tmp_path / "pinprick-out" / name) as figure:
            assert figure.width > 900


def test_says_how_far_it_is_where_there_is_no_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinprick.cli.console._SILENCE", -1)
    data = ("--data", "tensors:six.safetensors", "--batch-size", "4")
    err = run("explain", *GREEDY, *FEW, *data).err.splitlines()
    assert [line.split(": ")[1].split(" in ")[0] for line in err[:-1]] == [
        "4 of 6 images",
        "6 of 6 images",
    ]
    assert "images in" not in run("explain", *GREEDY, *FEW, *data, "--quiet").err


def test_limits_hold_for_the_attack_that_is_explained(run: Run, picture: Path) -> None:
    arguments = ("explain", picture, *GREEDY, *FEW, "--json")
    shell = run(*arguments, "--max-forwards", "7", "--max-seconds", "60")
    assert shell.status == 0, shell.err
    document = json.loads(shell.out)
    assert document["attack"]["limits"] == {"max_forwards": 7, "max_seconds": 60.0}
    assert "limits" not in json.loads(run(*arguments).out)["attack"]


def test_pixels_are_minimised_unless_the_unit_is_given(run: Run, picture: Path) -> None:
    """Eleven pixels are needed; of elements 21, which may lie in as many pixels."""
    arguments = ("explain", picture, "--model", "cli_test_models:colours", "--layer", "none")
    given = ("--attack", "sigma_zero", "--option", "steps=100", "--figures", "0")
    usual = run(*arguments, *given)
    assert "minimises" not in usual.out
    document = json.loads(Path("pinprick-out/explanation.json").read_text())
    assert document["unit"] == document["attack"]["unit"] == "pixels"
    assert document["images"][0]["l0_pixels"] in (11, 12)
    other = run(*arguments, *given, "--option", "unit=elements")
    assert "sigma_zero minimises elements, not pixels\n" in other.out
    document = json.loads(Path("pinprick-out/explanation.json").read_text())
    assert document["images"][0]["l0_pixels"] > 12
    assert document["images"][0]["explanation"]["spare_pixels"] == 0  # none can be put back alone


def test_an_attack_without_the_choice_is_named(run: Run, picture: Path) -> None:
    arguments = ("explain", picture, "--model", "cli_test_models:colours", "--layer", "none")
    shell = run(*arguments, "--attack", "sparsefool", "--figures", "0")
    assert "sparsefool minimises elements, not pixels\n" in shell.out
