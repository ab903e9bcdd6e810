"""The same run again: what must not matter does not, and the seed does where it should."""

from typing import Any

import pytest
import torch

from contract.baseline import Baseline, Watched, assert_same

pytestmark = pytest.mark.plain


def test_neither_layout_nor_a_full_mask_nor_a_trace_matters(base: Baseline) -> None:
    changes: dict[str, dict[str, Any]] = {
        "a second run without a trace": {},
        "another layout": {"images": base.images.to(memory_format=torch.channels_last)},
    }
    if base.attack.facts().masked:
        everywhere = torch.ones_like(base.images, dtype=torch.bool)
        changes["a mask that allows everything"] = {"allowed": everywhere}
    try:
        assert_repeats(base, {key: value for one in changes.values() for key, value in one.items()})
    except AssertionError as error:
        for change, arguments in changes.items():
            try:
                assert_repeats(base, arguments)
            except AssertionError:
                error.add_note(f"{change} is enough")
        raise


def assert_repeats(base: Baseline, arguments: dict[str, Any]) -> None:
    """The same images come from the same questions."""
    net = Watched()
    assert_same(base.rerun(model=net, **arguments), base.result)
    assert net.checksum == base.net.checksum


def test_the_seed_matters_where_the_card_says_so(base: Baseline) -> None:
    """It may lead to the same image in the end, but not by the same questions."""
    net = Watched()
    base.rerun(model=net, seed=1)
    assert (net.checksum != base.net.checksum) == base.attack.facts().random
