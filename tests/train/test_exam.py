"""The exam tells the worst case over two attacks, each with its budget, on stated images."""

from typing import Any

import torch
from torch import Tensor, nn

from pinprick import Classifier
from pinprick.data.dataset import Dataset
from pinprick.robust import stay_correct, strong_pgd
from pinprick.train.exam import FEW, Exam, evaluate


class Sum(nn.Module):
    """Class 1 if the mean pixel is above one half; with ``hidden``, without a gradient."""

    def __init__(self, *, hidden: bool = False, scale: float = 100.0) -> None:
        super().__init__()
        self.hidden, self.scale = hidden, nn.Parameter(torch.tensor(scale))

    def forward(self, images: Tensor) -> Tensor:
        over = images.mean(dim=(1, 2, 3)) - 0.5
        if self.hidden:
            over = (1e4 * over).round() / 1e4 + 0 * over
        return torch.stack((-over, over), dim=1) * self.scale


def even(level: int, count: int = 6) -> Dataset:
    """Grey images of one level, all of class 1."""
    pixels = torch.full((count, 1, 10, 10), level, dtype=torch.uint8)
    labels = torch.ones(count, dtype=torch.long)
    return Dataset.in_memory("grey", ("dark", "bright"), pixels, labels, "grey/test")


def exam_of(net: nn.Module, level: int, **settings: Any) -> dict[str, Any]:
    exam = Exam(**{"exam_steps": 5, "strong_steps": 10, "l0_queries": 200, **settings})
    return evaluate(exam, Classifier(net.eval()), even(level))


def test_few_elements_are_those_of_the_worse_of_two_attacks() -> None:
    """6 of 100 elements at 0 darken the image; without a gradient only a search by scores can."""
    few = exam_of(Sum(hidden=True), 134)["l0_elements"]
    assert few["pinprick_accuracy"] == {"10": 1.0, "24": 1.0}
    assert few["accuracy"] == {"10": 0.0, "24": 0.0}
    assert few["images"] == 6
    assert few["attacks"] == ["Pinprick, effort fast", "Sparse-RS, 200 queries per k"]


def test_what_withstands_both_is_left() -> None:
    """16 elements are needed: 10 are not enough, 24 are."""
    few = exam_of(Sum(), 150)["l0_elements"]
    assert few["accuracy"] == {"10": 1.0, "24": 0.0}


def test_a_score_search_that_is_left_out_is_not_named() -> None:
    few = exam_of(Sum(hidden=True), 134, l0_queries=0)["l0_elements"]
    assert few["accuracy"] == few["pinprick_accuracy"] == {str(k): 1.0 for k in FEW}
    assert few["attacks"] == ["Pinprick, effort fast"]


def test_the_stronger_pgd_fools_where_the_cross_entropy_is_saturated() -> None:
    """Logits in the thousands: the softmax is exactly 1 and its gradient exactly 0."""
    facts = exam_of(Sum(scale=1e6), 132)
    assert facts["accuracy"] == facts["pgd"]["accuracy"] == 1.0
    strong = facts["strong_pgd"]
    assert (strong["pgd_accuracy"], strong["accuracy"], strong["images"]) == (1.0, 0.0, 6)
    assert (strong["steps"], strong["restarts"], strong["loss"]) == (10, 5, "margin")


def test_a_sound_network_shows_no_difference_between_the_two() -> None:
    facts = exam_of(Sum(), 132, strong_images=4)
    assert facts["pgd"]["accuracy"] == 0.0
    assert facts["strong_pgd"]["accuracy"] == facts["strong_pgd"]["pgd_accuracy"] == 0.0
    assert facts["strong_pgd"]["images"] == 4


def test_either_part_may_be_left_out() -> None:
    facts = exam_of(Sum(), 132, strong_images=0, l0_images=0)
    assert facts.keys() == {"accuracy", "test_images", "pgd"}


def test_images_that_are_left_out_are_not_attacked_and_count_as_fooled() -> None:
    model = Classifier(Sum().eval())
    images, labels = even(255).images(), even(255).labels
    among = torch.tensor([True, False, True, False, False, True])
    assert torch.equal(stay_correct(strong_pgd(0.1, 2), model, images, labels, among=among), among)
    none = torch.zeros_like(among)
    assert torch.equal(stay_correct(strong_pgd(0.1), model, images, labels, among=none), none)
