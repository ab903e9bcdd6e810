"""A DataLoader, or any iterable of (images, labels), goes where images and labels go."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from pinprick import AttackResult, BadInput, Classifier, attack_batches, run, run_attack
from pinprick.attacks import PGD
from pinprick.data.dataset import Dataset
from pinprick.intake import Task

ATTACK = PGD(steps=3)  # its start is random, so that ids matter


def assert_same(one: AttackResult, other: AttackResult) -> None:
    for name, value in one.tensors().items():
        assert torch.equal(value, other.tensors()[name]), name
    assert one.goal.labels.tolist() == other.goal.labels.tolist()
    assert (one.attack, one.remarks) == (other.attack, other.remarks)


def test_a_loader_gives_the_result_of_one_tensor(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    loader = DataLoader(TensorDataset(images, labels), batch_size=4)
    whole = run_attack(ATTACK, linear, images, labels, batch_size=4, max_seconds=600.0)
    assert_same(run_attack(ATTACK, linear, loader, max_seconds=600.0), whole)
    assert whole.batch_size.tolist() == [4, 4, 4, 4, 2, 2]


def test_any_iterable_of_pairs_will_do(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    whole = run_attack(ATTACK, linear, images, labels, batch_size=3)
    pairs = [(images[:3], labels[:3].tolist()), [images[3:], labels[3:].int()]]
    assert_same(run_attack(ATTACK, linear, pairs), whole)
    assert_same(run_attack(ATTACK, linear, iter(pairs), progress=True), whole)


def test_a_batch_is_read_when_the_one_before_is_done(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    read = []

    def pairs() -> Iterator[tuple[Tensor, Tensor]]:
        for row in range(6):
            read.append(row)
            yield images[row : row + 1], labels[row : row + 1]

    results = attack_batches(ATTACK, linear, pairs())
    assert read == []
    for done, result in enumerate(results, start=1):
        assert (len(result), result.ids.tolist(), len(read)) == (1, [done - 1], done)
    assert done == 6


def test_a_batch_is_cut_to_the_batch_size(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    results = list(attack_batches(ATTACK, linear, [(images, labels)], batch_size=4))
    assert [len(result) for result in results] == [4, 2]


def test_classes_are_counted_once_and_not_on_an_empty_batch(
    linear: Classifier, images: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(model: Classifier, task: Task) -> Tensor:
        sizes.append(len(task))
        return first_answer(model, task)

    first_answer = run._first_answer
    monkeypatch.setattr(run, "_first_answer", counted)
    pairs = [(images[:0], labels[:0]), (images[:4], labels[:4]), (images[4:], labels[4:] + 9)]
    with pytest.raises(BadInput, match="labels must lie in 0 to 3"):
        list(attack_batches(ATTACK, linear, pairs))
    assert sizes == [4]


def test_one_mask_serves_all_batches(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    allowed = torch.zeros(6, 5, dtype=torch.bool)
    allowed[2, 3] = True
    pairs = [(images[:3], labels[:3]), (images[3:], labels[3:])]
    for mask in (allowed, allowed[None, None]):
        changed = run_attack(ATTACK, linear, pairs, allowed=mask).delta != 0
        assert torch.equal(changed.any(dim=1), allowed.expand(6, 6, 5))


def line_of(model: Classifier, batches: Any, labels: Any = None, **given: Any) -> str:
    with pytest.raises(BadInput) as caught:
        run_attack(ATTACK, model, batches, labels, **given)
    return str(caught.value)


@pytest.mark.parametrize("name", ["targets", "ids", "start", "allowed"])
def test_what_belongs_to_single_images_is_refused(
    name: str, linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    values = {"ids": [1], "targets": [1], "start": images, "allowed": images > 0}
    line = line_of(linear, [(images, labels)], **{name: values[name]})
    assert line == (
        f"{name} for single images cannot be matched to batches of an iterable; call "
        f"run_attack(attack, model, images, labels, {name}=...) for each batch, then join"
    )


def test_labels_beside_batches_are_refused(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    line = line_of(linear, list(images), labels)
    assert line.startswith("images must be a torch tensor if there are labels; ")


def test_a_bad_batch_is_named(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    good = (images, labels)
    array = np.zeros((2, 6, 5, 3), dtype=np.uint8)
    lines = {
        "batch 1: a batch must be a pair (images, labels), got 3 values": (images, labels, labels),
        "batch 1: a batch must be a pair (images, labels), got dict": {"image": images},
        "batch 1: images of a batch must be a torch tensor, got list": ([1], [2]),
        "batch 1: this is a single image with its label; "
        "torch.utils.data.DataLoader(dataset, batch_size=64) makes batches": (images[0], 1),
        "batch 1: images are (3, 6, 4), those before are (3, 6, 5); give images of one size": (
            images[..., :4],
            labels,
        ),
        "batch 1: labels must have one entry for each of the 6 images, got the shape (2,)": (
            images,
            [0, 1],
        ),
        "batch 1: images must be a torch tensor, got a numpy array of uint8 (2, 6, 5, 3); "
        "use torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255": (array, [0, 1]),
    }
    for line, bad in lines.items():
        assert line_of(linear, [good, bad]) == line


@pytest.mark.plain  # a map-style dataset has no __iter__
def test_a_dataset_of_single_images_needs_a_loader(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    assert "DataLoader(dataset, batch_size=64)" in line_of(linear, TensorDataset(images, labels))


def test_an_iterator_that_was_used_before_is_refused(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    pairs = iter([(images, labels)])
    run_attack(ATTACK, linear, pairs)
    line = line_of(linear, pairs)
    assert line == "images gives no batch; an iterator that was used before is empty"


def colours_in_another_order() -> tuple[Classifier, Dataset]:
    """A model that knows red, green, blue, and a set whose classes are blue, green, red."""
    labels = torch.tensor([0, 1, 2, 2, 1])
    pixels = torch.full((5, 3, 2, 2), 20, dtype=torch.uint8)
    pixels[torch.arange(5), 2 - labels] = 90
    net = torch.nn.Sequential(torch.nn.AvgPool2d(2), torch.nn.Flatten())
    model = Classifier(net, classes=("red", "green", "blue"), name="colours")
    return model, Dataset.in_memory("own", ("blue", "green", "red"), pixels, labels, "own/test")


def test_a_dataset_goes_in_with_the_labels_of_the_model() -> None:
    model, data = colours_in_another_order()
    trap = run_attack(ATTACK, model, data.images(), data.labels)
    assert trap.correct.tolist() == [False, True, False, False, True]
    some = data[torch.tensor([4, 2, 0])]
    result = run_attack(ATTACK, model, some, batch_size=2, progress=True)
    assert result.correct.all()
    assert result.goal.labels.tolist() == [1, 0, 2]
    assert result.ids.tolist() == [4, 2, 0]  # as from the shell, by index in the whole set
    assert result.batch_size.tolist() == [2, 2, 1]
    mapped = some.for_model(model)
    whole = run_attack(ATTACK, model, mapped.images(), mapped.labels, ids=[4, 2, 0], batch_size=2)
    assert_same(result, whole)


def test_the_batch_size_of_a_dataset_is_checked() -> None:
    model, data = colours_in_another_order()
    line = line_of(model, data, batch_size=-1)
    assert line == "batch_size must be a whole number of at least 1, got -1"


def test_a_dataset_whose_names_do_not_match_is_refused() -> None:
    model, data = colours_in_another_order()
    other = Classifier(model.net, classes=("r", "g", "b"), name="net")
    assert line_of(other, data).startswith("labels of own cannot go by name: ")
