"""The whole explanation: designed networks, images that failed, and what is written down."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from explain.designed import SHAPE, changed_at, model_of, result_of
from pinprick import AttackResult, BadInput, Classifier, NoAnswer, build, polish, run_attack
from pinprick.explain.class_scores import rivals
from pinprick.explain.noise.explain_noise import explain_noise
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.settings import NoiseSettings

PIXELS = NoiseSettings(grouping="pixels")
NOTHING = torch.zeros(1, *SHAPE, dtype=torch.double)


def two_patches(flat: Tensor) -> Tensor:
    """The upper left pixel feeds class 0 alone, the lower right one class 1 alone; five classes."""
    others = flat.new_full((len(flat), 3), -1.0)
    return torch.cat([4 * flat[:, :1] - 2, 4 * flat[:, -1:] - 2.5, others], dim=1)


def two_patch_case() -> tuple[Classifier, Tensor, Tensor]:
    images = NOTHING.clone()
    images[0, 0, 0, 0] = 1.0
    adversarial = NOTHING.clone()
    adversarial[0, 0, -1, -1] = 1.0
    return model_of(two_patches), images, adversarial


@pytest.mark.parametrize(("gauge", "own"), [("centred", 0.8), ("raw", 1.0)])
def test_each_patch_has_its_own_effect_but_for_what_centring_moves(gauge: Any, own: float) -> None:
    model, images, adversarial = two_patch_case()
    settings = NoiseSettings(gauge=gauge, radius=0)
    (explained,) = explain_noise(result_of(model, images, adversarial, [0]), model, settings)
    assert explained.status == "fooled"
    assert (explained.label, explained.rival, explained.method) == (0, 1, "exact")
    first, last = explained.groups
    for effects in ("shapley", "ablation", "path"):
        covers, adds = getattr(first, effects), getattr(last, effects)
        assert (covers.label, adds.label) == ("obscuring", "leading")
        assert math.isclose(covers.obscuring, 4 * own)
        assert math.isclose(covers.margin, 4)
        assert math.isclose(adds.leading, 4 * own)
        assert math.isclose(adds.margin, 4)
    assert math.isclose(explained.obscuring_share, 0.5)
    assert math.isclose(explained.margin, explained.clean.margin - explained.adversarial.margin)


def test_what_each_family_does_alone_and_what_is_left_without_it() -> None:
    model, images, adversarial = two_patch_case()
    (explained,) = explain_noise(result_of(model, images, adversarial, [0]), model)
    families = {family.name: family for family in explained.families}
    covered, led = families["obscuring alone"], families["leading alone"]
    assert (covered.changed, covered.state.guess, covered.leaves) == ((0,), 2, True)
    assert not covered.reaches
    assert (led.changed, led.state.guess, led.leaves) == ((1,), 0, False)
    assert families["obscuring and leading"].reaches
    assert families["without obscuring"].state == led.state
    assert families["without leading"].state == covered.state
    assert {family.size for family in explained.families} == {1, 2}


def test_sampling_goes_on_while_a_label_is_open() -> None:
    """Three pixels lead only together, each by a third of 3.3, and each obscures by 0.5."""

    def answer(flat: Tensor) -> Tensor:
        three = flat[:, [3, 7, 11]]
        return torch.stack([2 - 0.5 * three.sum(dim=1), 3.3 * three.prod(dim=1)], dim=1)

    model = model_of(answer)
    adversarial = NOTHING.clone()
    adversarial.view(1, -1)[:, [3, 7, 11]] = 1.0
    result = result_of(model, NOTHING, adversarial, [0])
    few = replace(PIXELS, gauge="raw", exact=0, least_pairs=2, error=1.0, max_pairs=8)
    (short,) = explain_noise(result, model, few)
    (long,) = explain_noise(result, model, replace(few, max_pairs=4000))
    assert "undecided" in [group.shapley.label for group in short.groups]
    assert [group.shapley.label for group in long.groups] == ["leading"] * 3
    assert 8 == short.pairs < long.pairs < 4000


def test_the_margin_falls_group_by_group_from_clean_to_adversarial() -> None:
    def answer(flat: Tensor) -> Tensor:
        push = flat @ torch.arange(20.0, dtype=torch.double)
        return torch.stack([20 - push, push], dim=1)

    model = model_of(answer)
    (explained,) = explain_noise(
        result_of(model, NOTHING, changed_at(NOTHING, [3, 7, 5]), [0]), model, PIXELS
    )
    assert explained.order == (2, 1, 0)
    assert [stage.margin for stage in explained.stages] == [20.0, 6.0, -4.0, -10.0]
    assert [stage.guess for stage in explained.stages] == [0, 0, 1, 1]
    assert explained.stages[0] == explained.clean
    assert explained.stages[-1] == explained.adversarial


def test_what_is_added_to_all_logits_changes_no_label(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    adversarial = changed_at(images, [0, 4, 13, 22, 29])
    shifted = Classifier(lambda x: curved(x) + 10 * x.flatten(1).sum(dim=1, keepdim=True))
    explained, same = (
        explain_noise(result_of(model, images, adversarial, curved_labels), model, PIXELS)
        for model in (curved, shifted)
    )
    for one, other in zip(explained, same, strict=True):
        for group, twin in zip(one.groups, other.groups, strict=True):
            assert group.shapley.label == twin.shapley.label
            assert group.ablation.label == twin.ablation.label
            assert math.isclose(group.shapley.obscuring, twin.shapley.obscuring, abs_tol=1e-9)


def maps_for(result: AttackResult, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(6, *result.images.shape[2:], generator=generator)[result.ids]


def every_kind(curved: Classifier, images: Tensor) -> AttackResult:
    """A result with exact and sampled images, one that failed, one skipped, one left alone."""
    adversarial = changed_at(images, [0, 4, 13, 22, 29], 0.0)
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    for row, pixels in ((0, 15), (5, 5)):
        attack, one = build({"name": "pgd0", "k": pixels}), torch.tensor([row])
        adversarial[row] = run_attack(attack, curved, images[one], labels[one]).adversarial[0]
    adversarial[1:3] = images[1:3]
    labels[2] = (labels[2] + 1) % 4
    return result_of(curved, images, adversarial, labels)


def explain_in_full(curved: Classifier, result: AttackResult) -> tuple[Explanation, ...]:
    maps = [maps_for(result, seed) for seed in range(3)]
    return explain_noise(
        result,
        curved,
        PIXELS,
        true_maps=maps[0],
        adversarial_maps=maps[1],
        control_maps=maps[2],
    )


def test_failed_and_skipped_images_are_explained_as_such(
    curved: Classifier, images: Tensor
) -> None:
    explained = explain_in_full(curved, every_kind(curved, images))
    assert [one.status for one in explained] == [
        "fooled",
        "failed",
        "skipped",
        "failed",
        "failed",
        "fooled",
    ]
    assert [one.method for one in explained] == [
        "sampled",
        "none",
        "none",
        "exact",
        "exact",
        "exact",
    ]
    assert [len(one.groups) for one in explained] == [15, 0, 0, 5, 5, 5]
    assert explained[3].remark == "not found"
    assert explained[3].rival != explained[3].label == explained[3].adversarial.guess
    assert explained[3].spare_pixels is None
    assert explained[3].minimal is None
    assert (explained[1].forwards, explained[1].margin) == (0, 0.0)
    assert explained[1].stages == (explained[1].clean,)


@pytest.mark.slow
def test_a_batch_is_explained_as_its_images_are_one_by_one(
    curved: Classifier, images: Tensor
) -> None:
    result = every_kind(curved, images)
    together = explain_in_full(curved, result)
    for row, whole in enumerate(together):
        (alone,) = explain_in_full(curved, result[torch.tensor([row])])
        assert_same(alone.to_dict(), whole.to_dict())


def assert_same(one: Any, other: Any) -> None:
    """Equal in everything, numbers to 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    elif isinstance(one, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    else:
        assert one == other


def test_there_and_back_as_json(curved: Classifier, images: Tensor) -> None:
    for one in explain_in_full(curved, every_kind(curved, images)):
        text = json.dumps(one.to_dict(), allow_nan=False)
        back = Explanation.from_dict(json.loads(text))
        assert json.dumps(back.to_dict()) == text
        assert repr(back) == repr(one)


def test_what_is_no_explanation_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no Explanation as pinprick writes it: see .'ablation_gap"):
        Explanation.from_dict({"id": 3})


def test_every_pass_is_counted(curved: Classifier, images: Tensor) -> None:
    asked = [0, 0]

    def answer(x: Tensor) -> Tensor:
        asked[0] += len(x)
        if x.requires_grad:
            x.register_hook(lambda grad: asked.__setitem__(1, asked[1] + len(grad)))
        return curved(x)

    result = every_kind(curved, images)
    explained = explain_noise(result, Classifier(answer), PIXELS)
    assert sum(one.forwards for one in explained) == asked[0]
    assert sum(one.backwards for one in explained) == asked[1]
    pixels = 5
    ends, families, stages = 2, 5, pixels - 1
    path = explained[5].path_steps
    saliency = 1
    wanted = ends + 2**pixels + 2 * pixels + stages + families + pixels + path + saliency
    assert explained[5].forwards == wanted
    assert explained[5].backwards == 2 * (path + saliency)


def test_no_more_images_than_a_block_are_asked_about_at_a_time(
    curved: Classifier, images: Tensor
) -> None:
    sizes = set()

    def answer(x: Tensor) -> Tensor:
        sizes.add(len(x))
        return curved(x)

    explain_noise(every_kind(curved, images), Classifier(answer), replace(PIXELS, block=3))
    assert max(sizes) == 3


def test_a_model_without_gradients_has_no_path(curved: Classifier, images: Tensor) -> None:
    result = every_kind(curved, images)
    scores = Classifier(curved.net, access="scores")
    explained = explain_noise(result, scores, PIXELS)[5]
    assert explained.groups[0].path is None
    assert (explained.path_steps, explained.backwards) == (0, 0)
    assert math.isnan(explained.path_gap)
    assert math.isnan(explained.saliency_overlap)
    assert explained.groups[0].shapley == explain_noise(result, curved, PIXELS)[5].groups[0].shapley


def test_a_service_that_stops_answering_leaves_no_half_explanation(
    curved: Classifier, images: Tensor
) -> None:
    class Service:
        sent = 0

        def __call__(self, x: Tensor) -> Tensor:
            self.sent += len(x)
            logits = curved(x).detach()
            if self.sent <= 100:
                return logits
            logits[0] = torch.nan
            raise NoAnswer("the service is tired", logits=logits, reasons={0: "no answer"})

    result = every_kind(curved, images)
    service = Classifier(Service(), access="scores", name="service")
    with pytest.raises(NoAnswer, match=r"did not answer all queries about \d of 4 images"):
        explain_noise(result, service, PIXELS)


def test_says_whether_a_pixel_can_be_spared(curved: Classifier, images: Tensor) -> None:
    def answer(flat: Tensor) -> Tensor:
        push = flat.sum(dim=1)
        return torch.stack([torch.full_like(push, 2.5), push], dim=1)

    model = model_of(answer)
    result = result_of(model, NOTHING, changed_at(NOTHING, [1, 5, 9, 16]), [0])
    (loose,) = explain_noise(result, model)
    assert (loose.spare_pixels, loose.minimal, loose.polished) == (4, False, "")
    (tight,) = explain_noise(polish(result, model, unit="pixels"), model)
    assert (tight.changed_pixels, tight.spare_pixels, tight.minimal) == (3, 0, True)
    assert tight.polished == "pixels"
    (blind,) = explain_noise(result, model, NoiseSettings(max_spare=3))
    assert (blind.spare_pixels, blind.minimal) == (None, None)


def test_leading_is_about_the_target_or_the_nearest_other_class() -> None:
    model = model_of(lambda flat: flat[:, :4])
    images = torch.tensor([[0.9, 0.1, 0.5, 0.3], [0.1, 0.9, 0.2, 0.3]]).view(2, 1, 2, 2)
    result = result_of(model, images, images, [0, 0])
    assert rivals(result).tolist() == [2, 1]
    assert rivals(result_of(model, images, images, [0, 0], [3, 3])).tolist() == [3, 3]


def test_an_effect_that_the_place_agrees_with_is_strict() -> None:
    model, images, adversarial = two_patch_case()
    true, other = torch.zeros(2, 1, 4, 5)
    true[0, 0, 0], other[0, 0, 0] = 1.0, 1.0
    (explained,) = explain_noise(
        result_of(model, images, adversarial, [0]),
        model,
        true_maps=true,
        adversarial_maps=other,
    )
    first, last = (group.place for group in explained.groups)
    assert first is not None
    assert last is not None
    assert (first.label, first.strict, first.true_share) == ("overlap", "obscuring", 1.0)
    assert (last.label, last.strict, last.adversarial_share) == ("outside", "", 0.0)
    assert explained.maps is not None
    assert explained.maps.inside_share == 0.5
    assert explained.maps.inside_chance == 0.05
    assert math.isnan(explained.maps.control_lift)


def test_a_group_knows_where_it_is() -> None:
    model = model_of(lambda flat: torch.stack([2 - flat.sum(dim=1), flat.sum(dim=1)], dim=1))
    adversarial = NOTHING.clone()
    adversarial[0, 0, 1, 3], adversarial[0, 0, 3, 4], adversarial[0, 0, 0, 0] = 0.75, 0.25, 1.0
    settings = NoiseSettings(radius=0, max_groups=2)
    (explained,) = explain_noise(result_of(model, NOTHING, adversarial, [0]), model, settings)
    assert [group.pixels for group in explained.groups] == [((0, 0),), ((1, 3), (3, 4))]
    assert explained.groups[1].centre == (1.5, 3.25)
    assert explained.groups[1].box == (1, 3, 3, 4)
    assert explained.groups[1].weight == 0.5


def test_the_model_and_the_result_are_left_alone(curved: Classifier, images: Tensor) -> None:
    result = every_kind(curved, images)
    before = result.adversarial.clone()
    assert isinstance(curved.net, torch.nn.Module)
    curved.net.train()
    with torch.inference_mode():
        explain_noise(result, curved, PIXELS)
    assert torch.equal(result.adversarial, before)
    assert curved.net.training
    assert all(parameter.requires_grad for parameter in curved.net.parameters())


def test_no_images_have_no_explanations(curved: Classifier, images: Tensor) -> None:
    result = every_kind(curved, images)
    assert explain_noise(result[torch.tensor([], dtype=torch.long)], curved) == ()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"true_maps": torch.ones(6, 6, 5)}, "together; got true_maps only"),
        ({"control_maps": torch.ones(6, 6, 5)}, "together; got control_maps only"),
        (
            {"true_maps": torch.ones(6, 7, 7), "adversarial_maps": torch.ones(6, 6, 5)},
            r"true_maps must be a tensor of shape \(6, 6, 5\), got \(6, 7, 7\)",
        ),
        (
            {"true_maps": torch.ones(6, 6, 5), "adversarial_maps": -torch.ones(6, 6, 5)},
            "adversarial_maps must be finite and not negative",
        ),
    ],
)
def test_maps_that_do_not_fit_are_refused(
    curved: Classifier, images: Tensor, given: dict[str, Any], line: str
) -> None:
    with pytest.raises(BadInput, match=line):
        explain_noise(every_kind(curved, images), curved, **given)


def test_refuses_more_pairs_at_least_than_at_most() -> None:
    with pytest.raises(BadInput, match="needs max_pairs >= least_pairs, got 4 and 16"):
        NoiseSettings(max_pairs=4)
