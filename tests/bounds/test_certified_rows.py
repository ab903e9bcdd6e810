"""The stored certificates agree with each other and with the attacks of the leaderboard."""

import pytest

from generators import certified
from generators.certified import floor_and_ceiling, leaderboard_fewest, most_certified, runs


@pytest.mark.parametrize("model", runs())
def test_no_attack_of_the_leaderboard_beats_a_stored_certificate(model: str) -> None:
    both = floor_and_ceiling(model, most=12)
    assert len(both.floor) == len(both.ceiling) == 13
    assert both.floor[0] == both.ceiling[0]  # the clean accuracy
    assert all(low <= high for low, high in zip(both.floor, both.ceiling, strict=True))
    for curve in (both.floor, both.ceiling):
        assert curve == sorted(curve, reverse=True)
    attacked = set(leaderboard_fewest(model)) & set(most_certified(runs()[model]))
    assert len(attacked) == runs()[model][0]["correct"]


@pytest.mark.parametrize("model", runs())
def test_each_image_is_decided_in_turn(model: str) -> None:
    found: dict[int, list[tuple[int, str]]] = {}
    for row in runs()[model]:
        found.setdefault(row["image"], []).append((row["t"], row["outcome"]))
    for decisions in found.values():
        assert [t for t, _ in decisions] == list(range(1, len(decisions) + 1))
        assert all(outcome == "certified" for _, outcome in decisions[:-1])


def test_an_attack_that_beats_a_certificate_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model = "pinprick:mnist_cnn"
    image, t = max(most_certified(runs()[model]).items(), key=lambda each: each[1])
    monkeypatch.setattr(certified, "leaderboard_fewest", lambda model: {image: t})
    with pytest.raises(AssertionError, match=f"image {image}: fooled though certified"):
        floor_and_ceiling(model)
