"""Other people's code as attacks: what it does to its surroundings ends with the call."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinprick import Attack, BadInput, Card, Classifier, run_attack

ROOT = Path(__file__).parents[2]
CODE = """
import missing_here
import numpy as np
from utils import BRIGHT

def attack(network, images, labels):
    network.train()
    network.zero_grad()
    print("noise")
    images = images.cuda().clone()
    while True:
        place = np.random.randint(images.shape[-1])
        images[:, :, :, place] = BRIGHT
        logits = network(images)
        logits.fill_(-1)
        if place == 0:
            return images.double() + 1e-9
"""


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    for name, bright in (("one", 1.0), ("two", 0.5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "utils.py").write_text(f"BRIGHT = {bright}\n")
        (tmp_path / name / "theirs.py").write_text(CODE)
    monkeypatch.setenv("PINPRICK_PEERS", str(tmp_path))
    module = import_module("benchmarks.parity.peer")
    module.load_peer.cache_clear()
    return module


class Counting(nn.Module):
    """Sums the columns; counts the images of all passes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.norm = nn.BatchNorm2d(1)

    def forward(self, images: Tensor) -> Tensor:
        self.seen += len(images)
        logits: Tensor = self.norm(images).sum(dim=(1, 2))
        return logits


def borrowed_attack(peer: Any, way: str) -> Attack:
    run_way: Callable[..., Tensor] = getattr(peer, way)

    @dataclass(frozen=True, kw_only=True)
    class Borrowed(peer.Peer):  # type: ignore[misc]
        """Their code on one image at a time."""

        card: ClassVar[Card] = Card(
            name="borrowed",
            title="Borrowed",
            norm="l0",
            kind="budget",
            access="scores",
            targeted=False,
            paper="",
        )

        def run(self, problem: Any) -> Tensor:
            code = peer.load_peer("one", "theirs", ("missing_here",))
            return run_way(
                problem,
                lambda network, part: code.attack(network, part.images, part.goal.labels),
            )

    attack: Attack = Borrowed()
    return attack


def attacked(attack: Attack, rows: slice = slice(None)) -> tuple[Any, Counting]:
    net = Counting().eval()
    images = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        labels = net(images).argmax(dim=1)
    net.seen = 0
    ids = torch.arange(3)[rows]
    result = run_attack(attack, Classifier(net), images[rows], labels[rows], ids=ids)
    return result, net


@pytest.mark.parametrize("way", ["one_by_one", "side_by_side"])
def test_an_image_gets_the_same_result_in_any_batch(peer: Any, way: str) -> None:
    attack = borrowed_attack(peer, way)
    together, _ = attacked(attack)
    alone, _ = attacked(attack, slice(1, 2))
    assert torch.equal(together.adversarial[1:2], alone.adversarial)
    assert together.forwards[1] == alone.forwards[0]


def test_both_ways_ask_the_same_questions(peer: Any) -> None:
    ways = [attacked(borrowed_attack(peer, way))[0] for way in ("one_by_one", "side_by_side")]
    assert torch.equal(ways[0].adversarial, ways[1].adversarial)
    assert torch.equal(ways[0].forwards, ways[1].forwards)
    assert len(set(ways[0].forwards.tolist())) > 1  # images stop at different times


@pytest.mark.parametrize("way", ["one_by_one", "side_by_side"])
def test_what_their_code_does_ends_with_the_call(
    peer: Any, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.random.seed(5)
    torch.manual_seed(5)
    result, net = attacked(borrowed_attack(peer, way))
    drawn = np.random.rand(), torch.rand(()).item()
    np.random.seed(5)
    torch.manual_seed(5)
    assert drawn == (np.random.rand(), torch.rand(()).item())
    assert not net.training
    assert not net.norm.training
    assert capsys.readouterr().out == ""
    assert result.adversarial.max() == 1  # theirs left the box by 1e-9
    assert Tensor.cuda.__name__ == "cuda"


def test_an_error_of_theirs_is_raised_and_no_thread_is_left(peer: Any) -> None:
    before = threading.active_count()

    def fails(network: Any, part: Any) -> Tensor:
        network(part.images)
        raise ZeroDivisionError

    attack = borrowed_attack(peer, "side_by_side")
    object.__setattr__(attack, "run", lambda problem: peer.side_by_side(problem, fails))
    with pytest.raises(ZeroDivisionError):
        attacked(attack)
    assert threading.active_count() == before


def test_repositories_do_not_share_modules(peer: Any) -> None:
    one = peer.load_peer("one", "theirs", ("missing_here",))
    two = peer.load_peer("two", "theirs", ("missing_here",))
    assert (one.BRIGHT, two.BRIGHT) == (1.0, 0.5)


def test_a_repository_that_is_not_there_is_named(
    peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="there is no three; set PINPRICK_PEERS"):
        peer.load_peer("three", "theirs")
    monkeypatch.delenv("PINPRICK_PEERS")
    with pytest.raises(BadInput, match="there is no one; set PINPRICK_PEERS"):
        peer.peer_folder("one")


def test_images_of_a_smaller_batch_count_for_those_that_they_resemble(peer: Any) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Part(peer.Peer):  # type: ignore[misc]
        """Asks about the last image twice, and about the first."""

        card: ClassVar[Card] = Card(
            name="part",
            title="Part",
            norm="l0",
            kind="budget",
            access="scores",
            targeted=False,
            paper="",
        )

        def run(self, problem: Any) -> Tensor:
            asked = problem.images[[2, 2, 0, 2]].clone()
            asked[:, 0, 0, 0] = 1
            peer.Network(problem)(asked)
            images: Tensor = problem.images
            return images

    result, _ = attacked(Part())
    assert result.forwards.tolist() == [1, 0, 3]
