"""A set and a model mean the same class by a label, or the set is refused."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from pinprick import BadInput, Classifier
from pinprick.data.agree import agree
from pinprick.data.dataset import Dataset

TEN = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def numbered(*labels: int, classes: Sequence[str] = ()) -> Dataset:
    files = tuple(Path(f"{row}.png") for row in range(len(labels)))
    numbers = torch.arange(len(labels))
    return Dataset("csv:a", tuple(classes), torch.tensor(labels), None, files, numbers, "csv:a")


def model(classes: Sequence[str] = TEN) -> Classifier:
    return Classifier(torch.nn.Flatten(), classes=classes, name="net")


@pytest.mark.parametrize("classes", [TEN, ()])
def test_numbers_need_not_reach_the_last_class(classes: Sequence[str]) -> None:
    same, said = agree(numbered(0, 3, 5), model(classes), 10)
    assert (same.labels.tolist(), said) == ([0, 3, 5], "")


def test_a_number_that_the_model_lacks_names_its_image() -> None:
    with pytest.raises(BadInput) as error:
        agree(numbered(0, 10, 3), model(), 10)
    assert str(error.value) == (
        "image 1 of csv:a (1.png) is labelled 10, but net has 10 classes, numbered from 0 to 9"
    )


def test_names_that_are_other_numbers_are_said() -> None:
    digits = [str(number + 1) for number in range(10)]
    same, said = agree(numbered(1, 2), model(digits), 10)
    assert same.labels.tolist() == [1, 2]
    assert said == "net calls class 1 '2'; labels of csv:a go by number"
    assert agree(numbered(1, 2), model([str(number) for number in range(10)]), 10)[1] == ""


def test_names_may_be_some_of_the_models_in_any_order() -> None:
    same, _ = agree(numbered(0, 1, classes=["Dog", "cat"]), model(), 10)
    assert same.labels.tolist() == [5, 3]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("cat", "hen"), "has 2 classes and net gives 10 scores; net has no class called 'hen'"),
        (("cat", "crane"), "2 classes of net are called 'crane'"),
    ],
)
def test_a_name_that_the_model_lacks_is_named(classes: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        agree(numbered(0, 1, classes=classes), model([*TEN[:8], "crane", "Crane"]), 10)
