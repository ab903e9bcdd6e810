"""Finished batches are saved in a folder, and the same call goes on after a stop."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from killing import KilledError, killed_at
from measured import measured
from torch import Tensor, nn

from pinprick import attack_batches, run_attack
from pinprick.attacks import IFGSM, Greedy, SparseRS
from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.problem import Problem
from pinprick.result import AttackResult
from pinprick.run import TimeLeft
from pinprick.types import Images


class Net(nn.Module):
    """A linear model that stops the process, as Ctrl-C does, at a chosen call."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.linear = nn.Linear(27, 4)
            nn.init.normal_(self.linear.weight)
        self.calls, self.stop_at = 0, stop_at

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.stop_at:
            raise KeyboardInterrupt
        logits: Tensor = self.linear(images.flatten(1))
        return logits


def images() -> tuple[Tensor, Tensor]:
    pictures = torch.rand(7, 3, 3, 3, generator=torch.Generator().manual_seed(1))
    return pictures, Net()(pictures).argmax(dim=1)


ATTACK = SparseRS(k=2, queries=20)


def attacked(folder: Path | None, net: Net | None = None, **changes: Any) -> AttackResult:
    pictures, labels = images()
    given: dict[str, Any] = {"attack": ATTACK, "images": pictures, "labels": labels}
    given |= {"batch_size": 2, "folder": folder} | changes
    return run_attack(model=net or Net(), **given)


def test_a_saved_run_has_the_same_result_as_one_that_is_not_saved(tmp_path: Path) -> None:
    plain = attacked(None, trace=True)
    assert measured(attacked(tmp_path / "run", trace=True)) == measured(plain)
    assert measured(attacked(tmp_path / "run", trace=True)) == measured(plain)
    files = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert files == [f"batch-0000{number}.safetensors" for number in range(4)] + ["run.json"]


def test_a_run_that_is_stopped_at_any_call_of_the_model_goes_on(tmp_path: Path) -> None:
    whole = measured(attacked(None))
    watch = Net()
    attacked(None, watch)
    for stop_at in range(1, watch.calls, 9):
        folder = tmp_path / str(stop_at)
        with pytest.raises(KeyboardInterrupt):
            attacked(folder, Net(stop_at))
        assert measured(attacked(folder)) == whole


def test_a_run_that_is_killed_at_any_operation_on_a_file_goes_on(tmp_path: Path) -> None:
    whole = measured(attacked(None, batch_size=4))
    with killed_at(None) as watch:
        attacked(tmp_path / "whole", batch_size=4)
    for operation in range(1, watch.count + 1):
        folder = tmp_path / str(operation)
        with pytest.raises(KilledError), killed_at(operation):
            attacked(folder, batch_size=4)
        assert measured(attacked(folder, batch_size=4)) == whole
        assert not list(folder.glob(".*.tmp"))


def test_finished_batches_are_not_attacked_again(tmp_path: Path) -> None:
    pictures, labels = images()
    batches = attack_batches(ATTACK, Net(), pictures, labels, batch_size=2, folder=tmp_path)
    next(batches), next(batches)
    full, rest = Net(), Net()
    attacked(None, full)
    attacked(tmp_path, rest)
    assert rest.calls < 0.7 * full.calls


def test_batches_of_an_iterable_are_saved_too(tmp_path: Path) -> None:
    pictures, labels = images()

    def loader(order: slice) -> list[tuple[Tensor, Tensor]]:
        return list(zip(pictures[order].split(3), labels[order].split(3), strict=True))

    whole = run_attack(ATTACK, Net(), loader(slice(None)))
    batches = attack_batches(ATTACK, Net(), loader(slice(None)), folder=tmp_path)
    next(batches)
    resumed = run_attack(ATTACK, Net(), loader(slice(None)), folder=tmp_path)
    assert measured(resumed) == measured(whole)
    with pytest.raises(BadInput, match="part-0 has other images;"):
        run_attack(ATTACK, Net(), loader(slice(3, 6)), folder=tmp_path)


def other_weights() -> Net:
    net = Net()
    net.linear.bias.data += 1e-3
    return net


def other_buffer() -> Net:
    net = Net()
    net.register_buffer("draws", torch.ones(2), persistent=False)
    return net


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "has seed 0, this one has 1;"),
        ({"batch_size": 3}, "has batch_size 2, this one has 3;"),
        ({"max_forwards": 5}, "has max_forwards none, this one has 5;"),
        ({"max_passes": 5}, "has max_passes none, this one has 5;"),
        ({"max_seconds": 9.0}, "has max_seconds none, this one has 9.0;"),
        ({"trace": True}, "has trace False, this one has True;"),
        ({"attack": SparseRS(k=3, queries=20)}, "has k 2, this one has 3;"),
        ({"attack": Greedy()}, "has attack sparse_rs, this one has greedy;"),
        ({"net": other_weights()}, "has other model weights;"),
        ({"net": other_buffer()}, "has other draws, or other buffers of the network;"),
        ({"images": images()[0].flip(0)}, "has other images;"),
        ({"images": images()[0][:5], "labels": images()[1][:5]}, "has other images;"),
        ({"labels": (images()[1] + 1) % 4}, "has other labels;"),
        ({"targets": (images()[1] + 1) % 4}, "has other targets;"),
        ({"ids": range(1, 8)}, "has other ids;"),
        ({"allowed": torch.ones(3, 3, dtype=torch.bool)}, "has another mask;"),
    ],
)
def test_another_run_is_refused_by_what_differs(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    attacked(tmp_path)
    with pytest.raises(BadInput, match=message) as error:
        attacked(tmp_path, **changes)
    assert str(error.value).endswith("or start again without the saved batches")


def test_another_number_of_threads_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacked(tmp_path)
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    with pytest.raises(BadInput, match=f"has threads {threads}, this one has 7;"):
        attacked(tmp_path)


def test_another_start_is_refused(tmp_path: Path) -> None:
    net, pictures = Net(), images()[0]
    whole = attacked(None, net, attack=IFGSM())
    given: dict[str, Any] = {"attack": Starting(), "start": whole}
    attacked(tmp_path, net, **given)
    with pytest.raises(BadInput, match="has another start;"):
        attacked(tmp_path, net, **given | {"start": pictures.flip(0)})


@dataclass(frozen=True, kw_only=True)
class Starting(Attack):
    """Returns its start."""

    card: ClassVar[Card] = Card(
        name="starting",
        title="Starting",
        norm="l0",
        kind="budget",
        access="labels",
        targeted=True,
        starts=True,
        paper="",
    )

    def __call__(self, problem: Problem) -> Images:
        assert problem.start is not None
        return problem.start


def cut_short(folder: Path) -> None:
    path = folder / "batch-00001.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def swap(folder: Path) -> None:
    (folder / "batch-00000.safetensors").replace(folder / "batch-00001.safetensors")


def no_json(folder: Path) -> None:
    (folder / "run.json").write_text("{")


def foreign_json(folder: Path) -> None:
    (folder / "run.json").write_text(json.dumps([1]))


def without_json(folder: Path) -> None:
    (folder / "run.json").unlink()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (cut_short, "is not a result saved by pinprick: .*; remove batch-00001.safetensors to att"),
        (swap, "holds other images than batch 1 of this run; remove batch-00001.safetensors to a"),
        (no_json, "run.json is not JSON"),
        (
            foreign_json,
            "run.json was not written by this version of pinprick; start again without it",
        ),
        (without_json, "has batches, but no run.json to resume from; start again without them"),
    ],
)
def test_broken_and_foreign_files_are_refused(
    tmp_path: Path, harm: Callable[[Path], None], message: str
) -> None:
    attacked(tmp_path)
    harm(tmp_path)
    with pytest.raises(BadInput, match=message):
        attacked(tmp_path)


def test_a_batch_whose_file_was_removed_is_attacked_again(tmp_path: Path) -> None:
    whole = measured(attacked(tmp_path))
    (tmp_path / "batch-00001.safetensors").unlink()
    assert measured(attacked(tmp_path)) == whole


@pytest.mark.plain  # numbers and values of other kinds
def test_the_time_of_finished_batches_counts_against_the_limit(tmp_path: Path) -> None:
    spent = attacked(tmp_path, max_seconds=60.0).seconds
    time_left = TimeLeft(60.0)
    attacked(tmp_path, max_seconds=time_left)
    assert time_left.seconds == pytest.approx(60.0 - spent)
