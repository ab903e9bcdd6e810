"""A name that is not known brings those that may have been meant; messages are short lines."""

import pytest

from pinprick import UnknownName
from pinprick.errors import first_few, first_sentence, one_line

CLASSES = ("Egyptian cat", "catamaran", "crate", "tiger cat", "tiger")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cat", "did you mean Egyptian cat or tiger cat?"),
        ("Cat", "did you mean Egyptian cat or tiger cat?"),
        ("craet", "did you mean crate?"),
        ("zebra", "known: Egyptian cat, catamaran, crate, tiger, tiger cat"),
        ("", "known: Egyptian cat, catamaran, crate, tiger, tiger cat"),
    ],
)
def test_names_with_the_word_come_first_then_those_spelt_alike(name: str, hint: str) -> None:
    assert str(UnknownName("class", name, CLASSES)) == f"no class is called {name!r}; {hint}"


def test_a_model_without_its_source_is_found_by_its_name() -> None:
    error = UnknownName("model", "resnet50", ["torchvision:resnet50", "torchvision:resnet101"])
    assert str(error).endswith("did you mean torchvision:resnet50?")


def test_what_another_package_says_is_shown_in_one_line() -> None:
    error = ValueError("it is  broken.\n  Try again. " + "x" * 300)
    assert one_line(error).startswith("it is broken. Try again. xxx")
    assert first_sentence(error) == "it is broken"
    assert len(first_sentence(ValueError("x" * 300))) == 200
    assert one_line(ValueError()) == "ValueError"


def test_of_many_names_the_first_few_are_shown_with_the_number_of_others() -> None:
    assert first_few(["a", "b", "c"]) == "a, b, c"
    assert first_few(list("abcde"), separator="; ") == "a; b; c and 2 more"
    assert first_few([]) == ""
