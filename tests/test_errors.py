"""A name that is not known brings those that may have been meant."""

import pytest

from pinprick import UnknownName

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
