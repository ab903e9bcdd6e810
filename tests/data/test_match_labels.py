"""A set and a model mean the same class by a label, or the set is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pinprick import BadInput, Classifier, UnknownName
from pinprick.data.classes import find_class, imagenet_classes, synset_numbers
from pinprick.data.dataset import Dataset
from pinprick.data.match_labels import match_labels

TEN = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def numbered(*labels: int, classes: Sequence[str] = ()) -> Dataset:
    files = tuple(Path(f"{row}.png") for row in range(len(labels)))
    numbers = torch.arange(len(labels))
    return Dataset("csv:a", tuple(classes), torch.tensor(labels), None, files, numbers, "csv:a")


def model(classes: Sequence[str] = TEN) -> Classifier:
    return Classifier(torch.nn.Flatten(), classes=classes, name="net")


@pytest.mark.parametrize("classes", [TEN, ()])
def test_numbers_need_not_reach_the_last_class(classes: Sequence[str]) -> None:
    same, said = match_labels(numbered(0, 3, 5), model(classes), 10)
    assert (same.labels.tolist(), said) == ([0, 3, 5], "")


def test_a_number_that_the_model_lacks_names_its_image() -> None:
    with pytest.raises(BadInput) as error:
        match_labels(numbered(0, 10, 3), model(), 10)
    assert str(error.value) == (
        "image 1 of csv:a (1.png) is labelled 10, but net has 10 classes, numbered from 0 to 9"
    )


def test_names_that_are_other_numbers_are_said() -> None:
    digits = [str(number + 1) for number in range(10)]
    same, said = match_labels(numbered(1, 2), model(digits), 10)
    assert same.labels.tolist() == [1, 2]
    assert said == "net calls class 1 '2'; labels go by number"
    assert match_labels(numbered(1, 2), model([str(number) for number in range(10)]), 10)[1] == ""


def test_names_may_be_some_of_the_models_in_any_order() -> None:
    same, _ = match_labels(numbered(0, 1, classes=["Dog", "cat"]), model(), 10)
    assert same.labels.tolist() == [5, 3]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("cat", "hen"), "net has no class called 'hen', only plane, car, bird, …; give both"),
        (("cat", "crane"), "2 classes of net are called 'crane'; give both the same names$"),
    ],
)
def test_a_name_that_the_model_lacks_is_named(classes: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        match_labels(numbered(0, 1, classes=classes), model([*TEN[:8], "crane", "Crane"]), 10)


def in_memory(classes: Sequence[str], *labels: int) -> Dataset:
    """Images of 1 x 1 whose only bright channel is that of the class in red, green and blue."""
    colours = ("red", "green", "blue")
    pixels = torch.zeros(len(labels), 3, 1, 1, dtype=torch.uint8)
    for row, label in enumerate(labels):
        pixels[row, colours.index(classes[label])] = 200
    return Dataset.in_memory("own", tuple(classes), pixels, torch.tensor(labels), "own/test")


def test_labels_of_a_set_in_another_order_become_the_models() -> None:
    data = in_memory(("blue", "green", "red"), 0, 1, 2, 2)
    colours = Classifier(torch.nn.Flatten(), classes=("red", "green", "blue"), name="colours")
    predictions = colours(data.images()).argmax(dim=1)
    assert (predictions == data.labels).tolist() == [False, True, False, False]
    same = data.for_model(colours)
    assert torch.equal(same.labels, predictions)
    assert (same.classes, same.for_model(colours).labels.tolist()) == (
        colours.classes,
        same.labels.tolist(),
    )


def test_python_and_the_shell_share_one_mapping() -> None:
    data = replace(numbered(0, 1, classes=["Dog", "cat"]), targets=torch.tensor([1, 0]))
    same, shell = data.for_model(model()), match_labels(data, model(), 10)[0]
    assert same.targets is not None
    assert shell.targets is not None
    assert same.labels.tolist() == shell.labels.tolist() == [5, 3]
    assert same.targets.tolist() == shell.targets.tolist() == [3, 5]


def test_names_that_do_not_match_are_refused_with_the_way_out() -> None:
    data = in_memory(("blue", "green", "red"), 0, 1)
    other = Classifier(torch.nn.Flatten(), classes=("r", "g", "b"), name="net")
    with pytest.raises(BadInput) as error:
        data.for_model(other)
    assert str(error.value) == (
        "labels of own cannot go by name: net has no class called 'blue', only r, g, b; give both "
        "the same names, or use --labels-by-number (by_number=True, in a plan labels_by_number = "
        "true) if their order is the same"
    )
    assert data.for_model(other, by_number=True).labels.tolist() == [0, 1]
    said = match_labels(data, other, 3, by_number=True)[1]
    assert said == (
        "own and net call 3 of 3 classes by other names, such as 'blue' and 'r'; "
        "labels go by number"
    )


@pytest.mark.parametrize("classes", [(), ("LABEL_0", "LABEL_1", "LABEL_2"), ("0", "1", "2")])
def test_a_model_without_names_needs_as_many_classes(classes: tuple[str, ...]) -> None:
    data = in_memory(("blue", "green", "red"), 0, 1)
    nameless = Classifier(torch.nn.Flatten(), classes=classes, name="net")
    assert data.for_model(nameless).labels.tolist() == [0, 1]
    said = match_labels(data, nameless, 3)[1]
    assert said == "net has no class names; labels go by number, as in blue, green, red"
    for by_number in (False, True):
        with pytest.raises(BadInput, match="own has 3 classes and net gives 4 scores"):
            match_labels(data, nameless, 4, by_number=by_number)
    two = in_memory(("blue", "green"), 0)
    with pytest.raises(BadInput, match="own has 2 classes and net gives 3 scores"):
        two.for_model(nameless)


def test_a_set_of_imagenet_fits_any_thousand_names() -> None:
    """Two of its names stand for two classes each, and other packages use other words."""
    whole = numbered(0, 134, 517, classes=imagenet_classes())
    for words in (imagenet_classes(), [f"{name}, of some kind" for name in imagenet_classes()], ()):
        assert match_labels(whole, model(words), 1000)[0].labels.tolist() == [0, 134, 517]


SYNSETS = ("n01440764", "n02012849", "n03126707")  # tench, crane (bird), crane


@pytest.mark.parametrize("named", ["in words", "not at all", "by synsets"])
def test_synsets_are_the_classes_of_an_imagenet_model(named: str) -> None:
    names = {"in words": imagenet_classes(), "not at all": (), "by synsets": list(synset_numbers())}
    same, _ = match_labels(numbered(0, 1, 2, classes=SYNSETS), model(names[named]), 1000)
    assert same.labels.tolist() == [0, 134, 517]


def test_a_model_of_some_synsets_goes_by_their_names() -> None:
    same, _ = match_labels(numbered(0, 1, 2, classes=SYNSETS), model(SYNSETS[::-1]), 3)
    assert same.labels.tolist() == [2, 1, 0]


def test_synsets_in_other_words_are_said() -> None:
    words = [f"{name}, of some kind" for name in imagenet_classes()]
    same, said = match_labels(numbered(0, 1, classes=SYNSETS[:2]), model(words), 1000)
    assert same.labels.tolist() == [0, 134]
    assert said == (
        "csv:a and net call 2 of 2 classes by other names, such as 'tench' and "
        "'tench, of some kind'; labels go by ImageNet's synsets"
    )


def test_synsets_mean_nothing_to_another_model() -> None:
    with pytest.raises(BadInput, match="net has no class called 'n01440764'"):
        match_labels(numbered(0, 1, 2, classes=SYNSETS), model(), 10)


def test_a_synset_that_is_not_of_imagenet_is_named() -> None:
    classes = (*SYNSETS[:2], "n99999999")
    with pytest.raises(BadInput, match="net has no class called 'n99999999'"):
        match_labels(numbered(0, 1, 2, classes=classes), model(imagenet_classes()), 1000)


def test_synsets_and_words_may_be_mixed() -> None:
    mixed = numbered(0, 1, classes=("n02012849", "tench"))
    same, said = match_labels(mixed, model(imagenet_classes()), 1000)
    assert (same.labels.tolist(), said) == ([134, 0], "")


def test_names_beyond_the_models_scores_do_not_count() -> None:
    with pytest.raises(BadInput, match="net has no class called 'truck'"):
        match_labels(numbered(0, classes=["truck"]), model(), 9)


@pytest.mark.parametrize(
    ("text", "names", "number"),
    [
        ("n02012849", imagenet_classes(), 134),
        ("N02012849", (), 134),
        ("n02012849", SYNSETS, 1),
        ("Tench", SYNSETS, 0),
        ("crane", SYNSETS, 2),
    ],
)
def test_a_class_may_be_given_by_its_synset(text: str, names: Sequence[str], number: int) -> None:
    assert find_class(text, names, count=len(names) or 1000, owner="net") == number


def test_a_synset_that_is_not_there_is_unknown() -> None:
    with pytest.raises(UnknownName, match="no class of net is called 'n01440764'"):
        find_class("n01440764", TEN, count=10, owner="net")
