"""Results: what is worked out from what was measured."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pinprick import AttackResult, BadInput, Goal, join
from pinprick.trace import Passes, Trace


def result_of(images: Tensor, adversarial: Tensor, **fields: Any) -> AttackResult:
    """A result as the referee would give it, of a model that is fooled by every change."""
    count = len(images)
    changed = (adversarial != images).flatten(1).any(dim=1)
    clean = torch.tensor([[1.0, 0.0]]).repeat(count, 1)
    fooled = torch.where(changed.unsqueeze(1), clean.flip(1), clean)
    numbers = torch.arange(count)
    given: dict[str, Any] = {
        "images": images,
        "adversarial": adversarial,
        "goal": Goal(torch.zeros(count, dtype=torch.long)),
        "clean_logits": clean,
        "adversarial_logits": fooled,
        "rounded_logits": clean,
        "forwards": numbers + 3,
        "backwards": numbers,
        "out_of_budget": numbers % 2 == 1,
        "out_of_time": numbers % 3 == 1,
        "ids": numbers + 100,
        "batch_size": torch.full((count,), count),
        "remarks": tuple("" if met else "not found" for met in changed.tolist()),
        "seconds": 1.5,
        **fields,
    }
    return AttackResult(**given)


def test_a_pixel_is_a_place_and_an_element_a_channel_of_it() -> None:
    images = torch.zeros(2, 3, 2, 5)
    adv = images.clone()
    adv[0, :, 1, 2] = 0.5  # one place, three channels
    adv[0, 1, 0, 0] = 0.5
    result = result_of(images, adv)
    assert result.l0_pixels.tolist() == [2, 0]
    assert result.l0_elements.tolist() == [4, 0]
    assert result.l0_pixels_percent.tolist() == [20.0, 0.0]
    assert result.l0_elements_percent.tolist() == [pytest.approx(100 * 4 / 30), 0.0]


def test_robust_accuracy_is_over_all_images_and_counts_clean_errors() -> None:
    images = torch.zeros(4, 3, 2, 5)
    adv = images.clone()
    adv[0, :, 1, 2] = 0.5
    adv[1, 0, 1, :3] = 0.5
    result = result_of(images, adv)  # the last two are not fooled
    assert [result.robust_accuracy(k) for k in (0, 1, 2, 3)] == [1.0, 0.75, 0.75, 0.5]
    assert result.robust_accuracy([0, 1, 2, 3]) == [1.0, 0.75, 0.75, 0.5]
    assert result.robust_accuracy_curve() == [(0, 1.0), (1, 0.75), (3, 0.5)]
    assert result.robust_accuracy_curve("elements") == [(0, 1.0), (3, 0.5)]
    assert result.robust_accuracy(2, "elements") == 1.0
    wrong = result_of(images, images, goal=Goal(torch.tensor([1, 0, 0, 0])))
    assert wrong.robust_accuracy(0) == 0.75
    last = torch.tensor([3])
    unheard = replace(result, clean_logits=result.clean_logits.index_fill(0, last, torch.nan))
    assert unheard.robust_accuracy(0) == 0.75
    targeted = replace(wrong, goal=Goal(wrong.goal.labels, torch.tensor([2, 2, 2, 2])))
    assert targeted.skipped.tolist() == [False] * 4
    assert targeted.robust_accuracy([0, 9]) == [0.75, 0.75]
    assert targeted.robust_accuracy_curve() == [(0, 0.75)]


def test_the_smallest_change_counts() -> None:
    images = torch.full((1, 1, 1, 2), 0.5)
    adv = images.clone()
    adv[0, 0, 0, 0] = torch.nextafter(adv[0, 0, 0, 0], torch.tensor(1.0))
    assert result_of(images, adv).l0_elements.tolist() == [1]


def test_norms_are_those_of_the_change() -> None:
    images = torch.zeros(1, 1, 1, 3)
    result = result_of(images, torch.tensor([[[[0.25, 0.0, 0.5]]]]))
    assert result.l1.item() == 0.75
    assert result.l2.item() == pytest.approx(0.3125**0.5)
    assert result.linf.item() == 0.5


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=12, max_size=12),
        min_size=1,
        max_size=4,
    )
)
def test_the_counts_and_norms_agree_with_each_other(values: list[list[float]]) -> None:
    adv = torch.tensor(values).view(-1, 3, 2, 2)
    result = result_of(torch.zeros_like(adv), adv)
    assert (result.l0_pixels <= result.l0_elements).all()
    assert (result.l0_elements <= 3 * result.l0_pixels).all()
    assert (result.linf <= result.l2 + 1e-6).all()
    assert (result.l2 <= result.l1 + 1e-6).all()
    assert (result.l1 <= result.l0_elements * result.linf + 1e-6).all()
    assert ((result.l0_elements == 0) == (result.linf == 0)).all()


def four_fates() -> AttackResult:
    """Fooled by the attack, not fooled, wrong to begin with, and not a number."""
    nan = float("nan")
    images = torch.zeros(4, 1, 1, 2)
    adv = images.clone()
    adv[0, 0, 0, 1] = adv[1, 0, 0, 1] = adv[3, 0, 0, 1] = 1.0
    clean = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [nan, 0.0]])
    after = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [nan, 1.0]])
    return result_of(images, adv, clean_logits=clean, adversarial_logits=after)


def test_success_skipped_and_correct_are_three_things() -> None:
    result = four_fates()
    assert result.success.tolist() == [True, False, True, False]
    assert result.skipped.tolist() == [False, False, True, False]
    assert result.correct.tolist() == [True, True, False, False]
    assert result.fooling_rate == 0.5


def test_what_was_needed_is_infinite_on_failure_and_zero_where_nothing_was() -> None:
    result = four_fates()
    assert result.l0_pixels.tolist() == [1, 1, 0, 1]
    assert result.needed_pixels.tolist() == [1, float("inf"), 0, float("inf")]
    assert result.needed_elements.tolist() == [1, float("inf"), 0, float("inf")]


def test_a_targeted_goal_can_be_skipped_though_the_model_is_wrong() -> None:
    zeros = torch.zeros(2, dtype=torch.long)
    images = torch.zeros(2, 1, 1, 1)
    logits = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    result = result_of(
        images,
        images,
        goal=Goal(zeros, zeros + 2),
        clean_logits=logits,
        adversarial_logits=logits,
        rounded_logits=logits,
    )
    assert result.skipped.tolist() == [False, True]
    assert result.correct.tolist() == [False, False]
    assert result.needed_pixels.tolist() == [float("inf"), 0]


def test_8_bits_are_judged_by_their_own_logits() -> None:
    images = torch.zeros(1, 1, 1, 1)
    result = result_of(images, images + 0.001)
    assert result.success.tolist() == [True]
    assert result.survives_8bit.tolist() == [False]


def test_a_cut_takes_every_row_along() -> None:
    images = torch.arange(24).view(4, 1, 2, 3) / 24
    result = result_of(images, images * 0.5)
    for rows in (torch.tensor([3, 1]), torch.tensor([False, True, False, True])):
        cut = result[rows]
        order = torch.arange(4)[rows]
        assert len(cut) == 2
        assert torch.equal(cut.images, images[order])
        assert torch.equal(cut.ids, order + 100)
        assert torch.equal(cut.forwards, order + 3)
        assert cut.out_of_budget.tolist() == [True, True]
        assert cut.seconds == result.seconds / 2
    marked = result_of(images, images, remarks=("a", "b", "c", "d"))
    assert marked[torch.tensor([2, 2, 0])].remarks == ("c", "c", "a")


def test_images_are_chosen_as_in_a_list() -> None:
    marked = replace(four_fates(), remarks=tuple("abcd"))
    assert marked[1:3].remarks == ("b", "c")
    assert marked[::-2].remarks == ("d", "b")
    assert marked[[3, 0]].remarks == ("d", "a")
    assert marked[-1].remarks == ("d",)
    assert marked[2].images.shape == (1, *marked.images.shape[1:])
    assert [one.remarks for one in marked] == [("a",), ("b",), ("c",), ("d",)]
    assert len(marked[:0]) == 0
    for index in (4, -5):
        with pytest.raises(
            IndexError, match=f"^the result has 4 images; there is no image {index}$"
        ):
            marked[index]


def test_a_part_has_its_share_of_the_time() -> None:
    images = torch.zeros(4, 1, 1, 2)
    labels = torch.tensor([0, 0, 0, 1])  # the last is wrong already, so it is skipped
    result = result_of(images, images + 0.5, goal=Goal(labels), seconds=6.0)
    assert [one.seconds for one in result] == [2.0, 2.0, 2.0, 0.0]
    assert [one.rows()[0]["seconds"] for one in result] == [2.0, 2.0, 2.0, 0.0]
    assert (result[1:].seconds, result[:0].seconds, result[::-1].seconds) == (4.0, 0.0, 6.0)
    assert result[1:][:1].seconds == 2.0
    assert join(list(result)).seconds == 6.0
    assert join([result[:2], replace(result[2:], seconds=5.0)]).seconds == 9.0
    none_attacked = replace(result, goal=Goal(torch.ones(4, dtype=torch.long)))
    assert [one.seconds for one in none_attacked] == [1.5, 1.5, 1.5, 1.5]
    assert result[:0][:0].seconds == 0.0


def test_the_work_of_going_through_images_grows_with_them_and_not_with_their_square(
    work_of: Callable[[Callable[[], object]], int],
) -> None:
    images = torch.rand(256, 1, 2, 3)
    count = torch.ones(256, dtype=torch.long)
    steps = Trace(count, count, count, *(count.float() for _ in range(3)))
    result = result_of(images, images * 0.5, trace=steps)
    few, many = (work_of(partial(list, part)) for part in (result[:16], result))
    assert many <= 17 * few


EACH = [name for name, value in vars(AttackResult).items() if hasattr(value, "__get__")]
PROPERTIES = [
    name
    for name in EACH
    if name != "delta" and isinstance(getattr(four_fates(), name, None), Tensor)
]


@pytest.mark.parametrize("name", PROPERTIES)
def test_what_is_worked_out_of_all_images_is_worked_out_once(
    name: str, work_of: Callable[[Callable[[], object]], int]
) -> None:
    images = torch.rand(4, 3, 16, 16)
    result = result_of(images, images * 0.5)
    first, second = (work_of(lambda: getattr(result, name)) for _ in range(2))
    assert first > 0
    assert second <= 3 * len(images)


@pytest.mark.parametrize("name", PROPERTIES)
def test_changing_what_was_handed_out_changes_nothing_else(name: str) -> None:
    result = four_fates()
    before = getattr(result, name).clone()
    getattr(result, name).zero_()
    getattr(result, name).fill_(1)
    assert torch.equal(getattr(result, name), before)


def test_a_replaced_field_is_looked_at_anew() -> None:
    result = four_fates()
    assert result.l0_pixels.tolist() == [1, 1, 0, 1]
    assert replace(result, adversarial=result.images).l0_pixels.tolist() == [0, 0, 0, 0]
    assert result[:1].l0_pixels.tolist() == [1]
    assert join([result, result[:1]]).success.tolist() == [True, False, True, False, True]


def test_what_was_worked_out_is_not_pickled() -> None:
    result = four_fates()
    unlooked = len(pickle.dumps(result))
    assert [getattr(result, name) is not None for name in PROPERTIES]
    assert len(pickle.dumps(result)) == unlooked
    assert pickle.loads(pickle.dumps(result)).success.tolist() == result.success.tolist()


def test_joining_puts_back_what_cutting_took_apart() -> None:
    images = torch.arange(24).view(4, 1, 2, 3) / 24
    whole = result_of(images, images * 0.5, peak_memory=7)
    parts = [whole[torch.tensor(rows)] for rows in ([0], [1, 2], [3])]
    joined = join(parts)
    for name in ("images", "adversarial", "forwards", "ids", "adversarial_logits"):
        assert torch.equal(getattr(joined, name), getattr(whole, name))
    assert joined.remarks == whole.remarks
    assert joined.seconds == pytest.approx(whole.seconds)
    assert joined.peak_memory == 7


def test_joining_keeps_targets_and_the_largest_memory() -> None:
    images = torch.zeros(1, 1, 1, 1)
    parts = [
        result_of(images, images, goal=Goal(torch.tensor([0]), torch.tensor([1])), peak_memory=peak)
        for peak in (5, 9)
    ]
    joined = join(parts)
    assert joined.goal.targets is not None
    assert joined.goal.targets.tolist() == [1, 1]
    assert joined.peak_memory == 9


def test_joining_a_result_without_images_adds_its_time_only() -> None:
    whole = replace(four_fates()[:3], stages={"first": Passes(torch.arange(3), torch.arange(3))})
    none = torch.zeros(0, 1)  # as the referee has it where there was no image to ask about
    no_images = replace(
        whole[:0],
        clean_logits=none,
        adversarial_logits=none,
        rounded_logits=none,
        stages={},
        seconds=0.5,
    )
    for parts in ([no_images, whole], [whole, no_images]):
        joined = join(parts)
        assert torch.equal(joined.clean_logits, whole.clean_logits)
        assert joined.stages["first"].forwards.tolist() == [0, 1, 2]
        assert joined.seconds == whole.seconds + 0.5
    assert len(join([no_images, no_images])) == 0
    with pytest.raises(BadInput, match="there is no result to join: the list is empty"):
        join([])


def test_a_result_is_shown_in_one_line() -> None:
    result = replace(four_fates(), attack={"name": "greedy", "max_pixels": 9}, model="net")
    assert repr(result) == (
        "<AttackResult: greedy on net, 4 images of 1 x 1 x 2, fooled 1 of 2 correct ones>"
    )
    assert repr(replace(result[:0], attack={}, model="")) == (
        "<AttackResult: unnamed attack on unnamed model, 0 images of 1 x 1 x 2, "
        "fooled 0 of 0 correct ones>"
    )


def test_an_empty_result_has_empty_counts_and_no_rate() -> None:
    images = torch.zeros(0, 3, 2, 2)
    result = result_of(images, images)
    assert result.l0_pixels_percent.shape == result.needed_pixels.shape == (0,)
    assert result.linf.shape == (0,)
    assert result.fooling_rate != result.fooling_rate  # not a number: no image to take it over
