"""What fools by less than the numerical noise is no result to count on, and says so."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from pinprick import (
    AttackResult,
    Classifier,
    Goal,
    build,
    check_result,
    load_data,
    load_model,
    load_result,
    polish,
    run_attack,
    save_result,
    score_model,
)
from pinprick.attacks import PGD, Greedy
from pinprick.explain.explain_result import explain_result
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.numerical_noise import confirm, guarded, measure_noise
from pinprick.oracle import exact_images
from pinprick.report.row import make_rows, plain
from pinprick.report.words import outcome_words
from pinprick.result import join

OFF = 0.05  # by how much the second best class gains where an image is asked about alone
NOISE = 4 * OFF


class Wavering(nn.Module):
    """A network whose logits depend on the batch size, by a known amount."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        if len(images) > 1:
            return logits
        second = logits.topk(2).indices[:, 1:]
        return logits.scatter_add(1, second, logits.new_full((1, 1), OFF))


@pytest.fixture
def wavering(curved: Classifier) -> Classifier:
    assert isinstance(curved.net, nn.Module)
    return Classifier(Wavering(curved.net), name="wavering")


@pytest.fixture
def pictures() -> Tensor:
    return exact_images(24, (3, 6, 5))


@pytest.fixture
def classes(curved: Classifier, pictures: Tensor) -> Tensor:
    with torch.no_grad():
        return curved(pictures).argmax(dim=1)


def fools_alone(result: AttackResult, model: Classifier) -> Tensor:
    with model.frozen(), torch.no_grad():
        return result.goal.met(torch.cat([model(image) for image in result.adversarial.split(1)]))


QUICK = [
    {"name": "deepfool"},
    {"name": "greedy"},
    {"name": "homotopy"},
    {"name": "sigma_zero", "steps": 100},
    {"name": "fmn", "steps": 100},
    {"name": "wifgsm", "steps": 30},
    {"name": "pinprick", "effort": "fast"},
]


@pytest.mark.parametrize("spec", QUICK, ids=lambda spec: str(spec["name"]))
def test_what_an_attack_finds_fools_alone_too(
    wavering: Classifier, pictures: Tensor, classes: Tensor, spec: dict[str, Any]
) -> None:
    result = run_attack(build(spec), wavering, pictures, classes)
    assert result.success.all()
    assert fools_alone(result, wavering).all()
    assert not result.within_noise.any()


@pytest.mark.parametrize("name", ["sparsefool", "jsma"])
def test_polishing_leaves_no_image_on_the_boundary(
    wavering: Classifier, pictures: Tensor, classes: Tensor, name: str
) -> None:
    result = run_attack(build({"name": name}), wavering, pictures, classes)
    shorter = polish(result, wavering, unit="pixels")
    assert shorter.l0_pixels.sum() < result.l0_pixels.sum()
    assert fools_alone(shorter, wavering).all()
    assert not shorter.within_noise.any()


def test_an_image_that_was_beyond_the_noise_stays_so_when_polishing_learns_of_it(
    curved: Classifier, wavering: Classifier, pictures: Tensor, classes: Tensor
) -> None:
    before = run_attack(build({"name": "sparsefool"}), curved, pictures, classes)
    before = replace(before, noise=None)  # as a file has it that was written long ago
    inside = replace(before, noise=torch.full((24,), NOISE)).within_noise
    shorter = polish(before, wavering, unit="pixels")
    assert shorter.noise is not None
    assert not (shorter.within_noise & ~inside).any()
    assert (shorter.l0_pixels < before.l0_pixels).any()


def test_the_noise_is_four_times_what_a_few_images_show(
    wavering: Classifier, curved: Classifier, pictures: Tensor
) -> None:
    with torch.no_grad():
        logits = wavering(pictures)
    assert measure_noise(wavering, pictures, logits) == pytest.approx(NOISE)
    assert measure_noise(wavering, pictures) == pytest.approx(NOISE)
    assert measure_noise(wavering, pictures[:1]) == pytest.approx(NOISE)  # against copies of it
    assert measure_noise(wavering, pictures[:0]) == 0
    noise = measure_noise(curved, pictures)
    assert noise is not None
    assert noise < 1e-12


def test_what_all_classes_gain_alike_is_no_noise(linear: Classifier, images: Tensor) -> None:
    shifted = Classifier(lambda x: linear(x) + (len(x) == 1))
    assert measure_noise(shifted, images) == 0


def test_logits_that_are_not_finite_tell_nothing_of_noise(
    linear: Classifier, images: Tensor
) -> None:
    def broken(x: Tensor) -> Tensor:
        return torch.where((x == images[0]).all(), torch.nan, linear(x))

    assert measure_noise(Classifier(broken), images) == 0


def test_an_exact_model_has_no_noise_and_its_results_are_what_they_were(
    monkeypatch: pytest.MonkeyPatch, linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(Greedy(), linear, images, labels)
    assert result.noise is not None
    assert result.noise.tolist() == [0] * 6
    assert not result.within_noise.any()
    monkeypatch.setattr("pinprick.run.guarded", lambda goal, noise: goal)
    assert torch.equal(run_attack(Greedy(), linear, images, labels).adversarial, result.adversarial)


def test_a_tie_of_an_exact_model_is_decided_and_not_noise() -> None:
    tied = Classifier(lambda x: 0 * x.flatten(1))
    result = run_attack(Greedy(), tied, torch.zeros(2, 1, 1, 2), [0, 1])
    assert result.success.tolist() == [False, True]
    assert not result.within_noise.any()


def test_a_remote_model_is_sent_nothing_more(linear: Classifier, images: Tensor) -> None:
    asked = []

    def ask(batch: Tensor) -> Tensor:
        asked.extend([len(batch)])
        with torch.no_grad():
            return linear(batch.double())

    model = score_model(ask, name="service")
    labels = linear(images).argmax(dim=1)
    result = run_attack(build({"name": "sparse_rs", "queries": 3}), model, images, labels)
    assert result.noise is None
    assert not result.within_noise.any()
    before = len(asked)
    assert measure_noise(model, images) is None
    assert len(asked) == before


def test_a_model_of_labels_alone_has_no_margins(linear: Classifier, images: Tensor) -> None:
    model = Classifier(lambda x: linear(x).gt(0).double(), access="labels")
    assert measure_noise(model, images) is None


def barely(most: float) -> Classifier:
    """Two classes, of which the second leads by ``most`` where all is white; alone by less."""

    def net(x: Tensor) -> Tensor:
        lead = most - 2 * (1 - x.flatten(1).mean(dim=1)) - OFF * (len(x) == 1)
        return torch.stack((torch.zeros_like(lead), lead), dim=1)

    return Classifier(net)


GREY = torch.full((3, 1, 2, 2), 0.4)


def test_what_fools_within_the_noise_alone_is_kept_and_marked() -> None:
    result = run_attack(Greedy(), barely(OFF / 2), GREY, [0, 0, 0])
    assert result.success.all()
    assert result.within_noise.all()
    assert result.remarks == ("", "", "")
    assert result.forwards.tolist() == [2 * 5] * 3  # of a second attack without the guard, too


@pytest.mark.parametrize("most", [-0.01, 1.0])
def test_what_is_found_beyond_the_noise_or_never_is_not_attacked_twice(most: float) -> None:
    result = run_attack(Greedy(), barely(most), GREY, [0, 0, 0])
    assert result.success.tolist() == [most > 0] * 3
    assert (result.forwards <= 5).all()


def test_a_budget_attack_keeps_its_best_try() -> None:
    result = run_attack(PGD(eps=0.6, step_size=0.1, steps=10), barely(OFF / 2), GREY, [0, 0, 0])
    assert result.success.all()
    assert result.within_noise.all()
    assert (result.forwards <= 11).all()


def doubtful_result() -> AttackResult:
    """Three images: fooled by much, by less than the noise, and not fooled by less than that."""
    images, ids = torch.zeros(3, 1, 1, 2), torch.arange(3)
    adv = images.clone()
    adv[..., 0] = 1.0
    after = torch.tensor([[0.0, 1.0], [0.0, 0.1], [0.1, 0.0]])
    return AttackResult(
        images=images,
        adversarial=adv,
        goal=Goal(torch.zeros(3, dtype=torch.long)),
        clean_logits=torch.tensor([[1.0, 0.0]]).repeat(3, 1),
        adversarial_logits=after,
        rounded_logits=after,
        forwards=ids,
        backwards=ids,
        out_of_budget=ids < 0,
        out_of_time=ids < 0,
        ids=ids,
        batch_size=torch.full_like(ids, 3),
        remarks=("", "", "not found"),
        seconds=1.0,
        noise=torch.full((3,), NOISE),
    )


def test_success_and_failure_within_the_noise_are_marked() -> None:
    result = doubtful_result()
    assert result.within_noise.tolist() == [False, True, True]
    assert replace(result, noise=None).within_noise.tolist() == [False] * 3
    assert replace(result, noise=torch.zeros(3)).within_noise.tolist() == [False] * 3


def test_the_noise_is_cut_joined_saved_and_loaded(tmp_path: Path) -> None:
    result = doubtful_result()
    assert result[1:].within_noise.tolist() == [True, True]
    assert join([result, result[:1]]).within_noise.tolist() == [False, True, True, False]
    assert join([result, replace(result, noise=None)]).noise is None
    assert result.to("cpu").within_noise.tolist() == [False, True, True]
    save_result(result, tmp_path / "new")
    assert load_result(tmp_path / "new").within_noise.tolist() == [False, True, True]
    with safe_open(tmp_path / "new", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys() if name != "noise"}  # noqa: SIM118
        save_file(tensors, tmp_path / "old", metadata=file.metadata())
    assert load_result(tmp_path / "old").noise is None


def test_tables_files_and_flags_tell_what_lies_within_the_noise(linear: Classifier) -> None:
    result = doubtful_result()
    rows = make_rows(result, linear)
    assert [outcome_words(row) for row in rows] == [
        "fooled",
        "fooled, within noise",
        "not found, within noise",
    ]
    assert plain(rows[1])["within_noise"] is True
    assert plain(rows[1])["noise"] == pytest.approx(NOISE)
    (flag,) = check_result(result)
    assert flag.name == "within_noise"
    assert "2 of 3 images" in flag.sentence
    assert check_result(result[:1]) == []
    assert check_result(result[:0]) == []


def test_an_image_that_does_not_fool_alone_is_not_explained_as_fooled(
    wavering: Classifier,
    curved: Classifier,
    pictures: Tensor,
    classes: Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pinprick.run.guarded", lambda goal, noise: goal)
    result = run_attack(build({"name": "homotopy"}), wavering, pictures[:6], classes[:6])
    alone = fools_alone(result, wavering)
    assert result.success.all()
    assert not alone.all()
    told = explain_result(result, wavering, NoiseSettings(path_steps=0), polished=False, maps=False)
    assert [one.status for one in told.explanations] == [
        "fooled" if met else "failed" for met in alone.tolist()
    ]
    assert "not alone" in told.explanations[alone.tolist().index(False)].remark
    assert torch.equal(told.result.success, alone)
    old = explain_result(
        replace(result, noise=None),
        wavering,
        NoiseSettings(path_steps=0),
        polished=False,
        maps=False,
    )
    assert torch.equal(old.result.success, alone)


def test_no_pixel_of_a_polished_image_is_called_spare(
    wavering: Classifier, pictures: Tensor, classes: Tensor
) -> None:
    result = run_attack(build({"name": "jsma"}), wavering, pictures[:12], classes[:12])
    told = explain_result(result, wavering, NoiseSettings(path_steps=0), maps=False)
    assert [one.spare_pixels for one in told.explanations] == [0] * 12


def test_confirming_asks_about_nothing_but_doubtful_images(linear: Classifier) -> None:
    asked: list[int] = []

    def ask(x: Tensor) -> Tensor:
        asked.append(len(x))
        return torch.tensor([[0.1, 0.0]]).repeat(len(x), 1)

    confirmed = confirm(doubtful_result(), Classifier(ask))
    assert asked == [1]
    assert confirmed.success.tolist() == [True, False, False]


def test_a_goal_with_slack_is_met_beyond_it_and_its_margin_says_how_far() -> None:
    logits = torch.tensor([[0.0, 0.5], [0.0, 0.25], [0.25, 0.0], [torch.nan, 1.0]])
    zeros = torch.zeros(4, dtype=torch.long)
    for goal in (Goal(zeros), Goal(zeros, zeros + 1)):
        strict = guarded(goal, 0.125)
        assert strict.met(logits).tolist() == [True, False, False, False]
        assert strict.margin(logits)[:3].tolist() == [-0.25, 0.0, 0.5]
        assert strict[zeros[:1]].slack == 0.25
        assert strict.plain.met(logits).tolist() == goal.met(logits).tolist()
        assert guarded(goal, None) == goal


def test_a_trace_has_the_margins_that_the_model_gave(
    wavering: Classifier, pictures: Tensor, classes: Tensor
) -> None:
    result = run_attack(Greedy(), wavering, pictures, classes, trace=True)
    assert result.trace is not None
    lowest = result.trace.margin_after(10_000)
    margin = result.goal.margin(result.adversarial_logits).float()
    assert (lowest <= margin).all()
    assert torch.equal(result.trace.fewest_after(10_000), result.needed_pixels.float())


def test_a_real_network_has_some_noise_and_polished_images_fool_alone() -> None:
    model, data = load_model("pinprick:fashion_cnn"), load_data("fashion_sample")[:24]
    images, labels = data.images(model), data.labels
    result = polish(run_attack(Greedy(), model, images, labels), model, unit="pixels")
    assert result.noise is not None
    assert (result.noise > 0).all()
    assert (result.noise < 1e-3).all()
    sure = ~result.within_noise
    assert sure[~result.skipped].all()
    assert torch.equal(fools_alone(result, model)[sure], result.success[sure])
