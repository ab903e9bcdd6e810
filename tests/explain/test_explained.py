"""A result is polished where that makes sense, held against three maps, and then explained."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier, gradcam, layercam, rivals, run_attack
from pinprick.attacks import FMN, IFGSM, Greedy
from pinprick.explain.explain_result import explain_result
from pinprick.explain.maps.class_maps import MapMethod
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.result import AttackResult


@pytest.fixture(scope="module")
def model() -> Classifier:
    """The channels' means, seen by a layer of eight by eight."""
    see = nn.Conv2d(3, 3, 1, bias=False)
    see.weight.data = torch.eye(3).view(3, 3, 1, 1)
    weigh = nn.Linear(3, 3, bias=False)
    weigh.weight.data = 10 * torch.eye(3)
    net = nn.Sequential(see, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), weigh)
    return Classifier(net.eval(), name="channels")


@pytest.fixture(scope="module")
def pictures() -> Tensor:
    base = torch.tensor([[0.6, 0.4, 0.2], [0.3, 0.5, 0.35]]).view(2, 3, 1, 1)
    return base + 0.05 * torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def greedy(model: Classifier, pictures: Tensor) -> AttackResult:
    return run_attack(Greedy(), model, pictures, torch.tensor([0, 1]))


def test_what_need_not_be_there_is_not_explained(model: Classifier, greedy: AttackResult) -> None:
    longer = greedy.adversarial.clone()
    longer[:, :, 0, 0] = greedy.images[:, :, 0, 0] * 0.99  # a pixel that does next to nothing
    explained = explain_result(replace(greedy, adversarial=longer), model)
    assert [one.polished for one in explained.explanations] == ["pixels", "pixels"]
    assert [one.minimal for one in explained.explanations] == [True, True]
    kept = explain_result(replace(greedy, adversarial=longer), model, polished=False)
    assert [one.polished for one in kept.explanations] == ["", ""]
    assert (kept.result.l0_pixels > explained.result.l0_pixels).all()


@pytest.mark.parametrize(
    ("attack", "polished"),
    [
        (IFGSM(eps=0.2, step_size=None), ""),
        (FMN(norm="linf", steps=20), ""),
        (FMN(norm="l0", steps=20), "pixels"),
    ],
    ids=str,
)
def test_dense_attacks_stay_as_they_are(
    model: Classifier, pictures: Tensor, attack: IFGSM | FMN, polished: str
) -> None:
    result = run_attack(attack, model, pictures, torch.tensor([0, 1]))
    explained = explain_result(result, model)
    assert {one.polished for one in explained.explanations} == {polished}


def test_polishing_that_ran_out_of_budget_is_reported(
    model: Classifier, pictures: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    strong = run_attack(IFGSM(eps=0.4, step_size=None), model, pictures, torch.tensor([0, 1]))
    few = NoiseSettings(max_spare=10)
    for passes, settled in (4, False), (2000, True):
        monkeypatch.setattr("pinprick.explain.explain_result.POLISH_PASSES", passes)
        for one in explain_result(strong, model, few, polished=True).explanations:
            assert one.changed_pixels > 10  # too many to try each again
            assert one.settled == settled
            assert one.spare_pixels == (0 if settled else None)
            assert one.most_spare_pixels == (0 if settled else one.changed_pixels)
    (loose, _) = explain_result(strong, model, few, polished=False).explanations
    assert (loose.settled, loose.spare_pixels, loose.most_spare_pixels) == (None, None, 64)


def test_an_attack_of_the_users_own_is_polished(model: Classifier, greedy: AttackResult) -> None:
    explained = explain_result(replace(greedy, attack={"name": "mine"}), model)
    assert explained.explanations[0].attack == {"name": "mine", "polished": "pixels"}


def test_a_start_and_limits_are_no_settings(model: Classifier, greedy: AttackResult) -> None:
    said = {"started_from": {"name": "pgd"}, "limits": {"max_forwards": 9}}
    held = replace(greedy, attack={**greedy.attack, **said})
    assert explain_result(held, model, maps=False).result.attack["polished"] == "pixels"


def test_the_maps_are_those_of_both_classes(model: Classifier, greedy: AttackResult) -> None:
    explained = explain_result(greedy, model)
    assert explained.true_maps is not None
    assert explained.adversarial_maps is not None
    assert explained.control_maps is not None
    led_to, shown = rivals(explained.result), explained.result
    for maps, images, classes in (
        (explained.true_maps, shown.images, shown.goal.labels),
        (explained.adversarial_maps, shown.adversarial, led_to),
        (explained.control_maps, shown.images, led_to),
    ):
        assert torch.equal(maps.classes, classes)
        torch.testing.assert_close(maps.values, layercam(model, images, classes).values)
    assert explained.explanations[0].maps is not None


def test_maps_can_be_left_out(model: Classifier, greedy: AttackResult) -> None:
    explained = explain_result(greedy, model, maps=False)
    assert explained.true_maps is explained.adversarial_maps is explained.control_maps is None
    assert explained.explanations[0].maps is None
    assert explained.explanations[0].groups


def test_a_model_of_scores_alone_is_explained_without_maps(greedy: AttackResult) -> None:
    def scores(images: Tensor) -> Tensor:
        return 10 * images.mean(dim=(2, 3))

    explained = explain_result(greedy, Classifier(scores, access="scores"))
    assert [one.polished for one in explained.explanations] == ["pixels", "pixels"]
    assert [one.settled for one in explained.explanations] == [True, True]
    assert explained.true_maps is None
    assert len(explained) == 2


def test_a_model_of_classes_alone_is_not_explained(greedy: AttackResult) -> None:
    def classes(images: Tensor) -> Tensor:
        return nn.functional.one_hot(images.mean(dim=(2, 3)).argmax(dim=1), 3).float()

    with pytest.raises(BadInput, match="needs scores, but tops gives labels alone"):
        explain_result(greedy, Classifier(classes, access="labels", name="tops"))


def test_no_images_are_no_result_to_explain(model: Classifier, greedy: AttackResult) -> None:
    with pytest.raises(BadInput, match="no image to explain"):
        explain_result(greedy[torch.zeros(2, dtype=torch.bool)], model)


@pytest.mark.parametrize(
    ("method", "side", "named"),
    [
        ("auto", 64, "LayerCAM"),
        ("auto", 65, "Grad-CAM"),
        ("gradcam", 64, "Grad-CAM"),
        ("layercam", 65, "LayerCAM"),
    ],
)
def test_small_images_are_seen_through_layercam(method: MapMethod, side: int, named: str) -> None:
    """Class 0 loses by what is on the left, which the mean gradient of Grad-CAM cannot see."""
    see = nn.Conv2d(1, 1, 1, bias=False)
    see.weight.data.fill_(1.0)
    weigh = nn.Linear(side * side, 2, bias=False)
    weigh.weight.data = torch.linspace(-1, 2, side).repeat(2, side) * torch.tensor([[1.0], [-1.0]])
    model = Classifier(nn.Sequential(see, nn.ReLU(), nn.Flatten(), weigh).eval())
    images = torch.full((1, 1, side, side), 0.5)
    images[:, :, :, -1] = 0.6
    result = run_attack(Greedy(max_pixels=4), model, images, torch.tensor([0]))
    maps = explain_result(result, model, method=method).true_maps
    assert maps is not None
    assert maps.method == named
    direct = (gradcam if named == "Grad-CAM" else layercam)(model, images, [0])
    assert torch.equal(maps.values, direct.values)
    assert bool((maps.values[0, :, : side // 4] == 0).all()) == (named == "LayerCAM")
