"""Settings that are one of a few words."""

import pytest

from pinprick import BadInput
from pinprick.parts.choice import check_choice


def test_a_word_that_is_not_among_them_is_answered_with_those_that_are() -> None:
    check_choice("pgd", "loss", "margin", ("cross_entropy", "margin"))
    line = r"^pgd needs loss to be 'cross_entropy' or 'margin', got 'hinge'$"
    with pytest.raises(BadInput, match=line):
        check_choice("pgd", "loss", "hinge", ("cross_entropy", "margin"))
