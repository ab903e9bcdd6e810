"""Integrated gradients: exact where the model is linear, complete where it is not."""

import pytest
import torch
from torch import Tensor, nn

from explain.nets import bent, drawn, own_modules, pictures
from pinprick import BadInput, Classifier
from pinprick.explain.class_scores import Gauge
from pinprick.explain.maps.integrated import integrated_gradients


def few_changes(images: Tensor) -> Tensor:
    """The images with four pixels set to other values."""
    adv = images.clone()
    adv[:, :, 2:4, 5:7] = drawn(len(images), images.shape[1], 2, 2, seed=9)
    return adv


@pytest.mark.parametrize("steps", [1, 7])
def test_are_weight_times_change_on_a_linear_model(
    linear: Classifier, images: Tensor, labels: Tensor, steps: int
) -> None:
    adv = images.flip(3)
    with torch.enable_grad():
        given = images.clone().requires_grad_()
        score = linear(given).gather(1, labels[:, None]).sum() - linear(given).mean(dim=1).sum()
        (weights,) = torch.autograd.grad(score, given)
    found = integrated_gradients(linear, images, adv, labels, steps=steps)
    torch.testing.assert_close(found.values, weights * (adv - images))
    assert (found.gap < 1e-6).all()
    assert (found.steps == steps).all()


@pytest.mark.parametrize("gauge", ["centred", "raw"])
def test_add_up_to_the_change_of_the_score(gauge: Gauge) -> None:
    model, images = own_modules(), pictures()
    adv = few_changes(images)
    found = integrated_gradients(model, images, adv, [0, 1, 2, 3, 0], gauge=gauge)
    with torch.no_grad():
        before, after = model(images), model(adv)
    if gauge == "centred":
        before, after = (logits - logits.mean(dim=1, keepdim=True) for logits in (before, after))
    change = (after - before)[range(5), [0, 1, 2, 3, 0]]
    torch.testing.assert_close(found.change, change)
    assert ((found.values.flatten(1).sum(dim=1) - change).abs() <= 0.02 * change.abs()).all()
    assert (found.gap <= 0.02).all()
    assert not found.values[adv == images].any()


def test_the_centred_score_does_not_mind_what_is_added_to_all_logits() -> None:
    model, images = own_modules(), pictures()
    adv = few_changes(images)

    class Shifted(nn.Module):
        def forward(self, given: Tensor) -> Tensor:
            return model(given) + 10 * given.flatten(1).sum(dim=1, keepdim=True)

    classes = [0, 1, 2, 3, 0]
    plain, shifted = (integrated_gradients(m, images, adv, classes) for m in (model, Shifted()))
    torch.testing.assert_close(plain.values, shifted.values)


class Steps(nn.Module):
    """A score that rises in one short part of the way, which few steps do not see rightly."""

    def forward(self, images: Tensor) -> Tensor:
        first = images[:, 0, 0, 0]
        rise = ((first - 0.5) * 40).clamp(0, 1)
        return torch.stack([rise, torch.zeros_like(rise)], dim=1)


def test_points_are_tripled_for_images_whose_sum_is_off() -> None:
    images = torch.zeros(2, 1, 2, 2, dtype=torch.float64)
    adv = images.clone()
    adv[0, 0, 0, 0] = 1.0  # past the rise
    adv[1, 0, 1, 1] = 1.0  # touches nothing
    found = integrated_gradients(Steps(), images, adv, [0, 0], steps=4, gauge="raw")
    assert found.steps[0] > 16
    assert found.gap[0] <= 0.02
    assert found.steps[1] == 4
    assert found.empty.tolist() == [False, True]
    few = integrated_gradients(Steps(), images, adv, [0, 0], steps=4, max_steps=11, gauge="raw")
    assert few.steps.tolist() == [4, 4]
    assert few.gap.tolist() == [1, 0]  # nothing was seen of a change that is there


def test_a_batch_gives_what_the_images_give_one_by_one() -> None:
    model, images = bent(nn.ReLU(inplace=True)), pictures()
    adv = few_changes(images)
    together = integrated_gradients(model, images, adv, batch_size=13)
    alone = [integrated_gradients(model, images[i : i + 1], adv[i : i + 1]) for i in range(5)]
    torch.testing.assert_close(together.values, torch.cat([one.values for one in alone]))
    assert torch.equal(together.classes, torch.cat([one.classes for one in alone]))
    with torch.no_grad():
        assert torch.equal(together.classes, model(adv).argmax(dim=1))


def test_a_function_will_do_but_scores_alone_will_not(linear: Classifier, images: Tensor) -> None:
    assert isinstance(linear.net, nn.Module)
    net = linear.net
    function = Classifier(lambda x: net(x))
    usual = integrated_gradients(linear, images, images.flip(2))
    assert torch.equal(integrated_gradients(function, images, images.flip(2)).values, usual.values)
    with pytest.raises(BadInput, match="an integrated gradient needs gradients, but"):
        integrated_gradients(Classifier(net, access="scores"), images, images)


def test_says_what_is_wrong_with_what_it_was_given(linear: Classifier, images: Tensor) -> None:
    with pytest.raises(BadInput, match=r"adv must have the shape \(6, 3, 6, 5\), got \(5,"):
        integrated_gradients(linear, images, images[:5])
    with pytest.raises(BadInput, match="need 1 <= steps <= max_steps"):
        integrated_gradients(linear, images, images, steps=2000)
    cut = Classifier(lambda x: x.detach().mean(dim=(2, 3)))
    with pytest.raises(BadInput, match="the model passes no gradient back"):
        integrated_gradients(cut, images, images.flip(2))
    with pytest.raises(BadInput, match="tolerance must be above 0"):
        integrated_gradients(linear, images, images, tolerance=0.0)


def test_no_point_of_a_path_is_asked_about_twice() -> None:
    images = torch.zeros(1, 1, 2, 2, dtype=torch.float64)
    adv = images.clone()
    adv[0, 0, 0, 0] = 1.0
    asked: list[float] = []

    class Heard(Steps):
        def forward(self, images: Tensor) -> Tensor:
            asked.extend(images[:, 0, 0, 0].tolist())
            return super().forward(images)

    found = integrated_gradients(Heard(), images, adv, [0], steps=4, gauge="raw")
    assert found.steps[0] > 4
    assert len(asked) == len({round(place, 9) for place in asked}) == int(found.steps[0]) + 2
