"""The speeds of a run against each other and against other people's code.

    python benchmarks/speed.py --model file:models/cifar10_resnet18 --data cifar10/test[0:1200] \
        --images 256 --passes 256 --overhead pinprick --warm-up sigma_zero,steps=20 \
        --attack pinprick --attack sigma_zero,steps=1000 --attack advlib_sigma_zero,steps=1000 \
        --turns 2 --out results/speed

Every attack runs at every speed, in turns in one process, on one batch. The attacks of
``--warm-up`` run at every speed before; by default those that are measured. A row is appended as
soon as it is measured:

    attack      one run: ``seconds`` of the attack, ``wall`` with the judging and the preparation
    compiling   how long the passes of ``compiled`` took to compile; that is not in other rows
    pass        one forward pass, and one with its backward pass, in milliseconds
    overhead    the time of an attack at exact over bare passes of the same batch sizes

``advlib_sigma_zero``, ``advlib_fmn`` and ``authors_sparse_pgd`` are other people's code. It is
called with the bare network and lies in the folder ``PINPRICK_PEERS`` (``parity/peer.py``).
``--data`` is as in ``case.py``.
"""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, redirect_stdout
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from case import open_run, read_attack, run_parser
from overhead import Recorder, bare
from torch import Tensor, nn

from pinprick import AttackResult, Classifier, Goal, run_attack
from pinprick.cuda_graph import CudaGraphs
from pinprick.replay import PATIENCE, ReplayedModel
from pinprick.speed import ModelPasses
from pinprick.speed_names import SPEEDS, Speed

sys.path.append(str(Path(__file__).parents[1]))
from benchmarks.parity.peer import load_peer

PEERS = ("advlib_sigma_zero", "advlib_fmn", "authors_sparse_pgd")
Row = dict[str, Any]
_REPEATS = 20  # passes that one timing is the mean of
_PROCESS = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {os.getpid()}"  # rows of one can be compared


class Timed(NamedTuple):
    """What some work gave, and how long it took until the device had finished.

    Attributes:
        made: What it gave.
        wall: Seconds that passed.
        cpu: Seconds of the CPU, which other programs on the machine hardly change.
    """

    made: Any
    wall: float
    cpu: float


def timed(work: Callable[[], Any], device: torch.device | None) -> Timed:
    """Do the work."""
    _wait(device)
    start, cpu = time.perf_counter(), time.process_time()
    made = work()
    _wait(device)
    return Timed(made, time.perf_counter() - start, time.process_time() - cpu)


def _wait(device: torch.device | None) -> None:
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)


def attack_row(run: Timed) -> Row:
    """What one run of an attack of this package gave."""
    result: AttackResult = run.made
    found = result.needed_elements[result.success].double()
    return {
        "fooled": int(result.success.sum()),
        "elements": found.mean().item(),
        "median_elements": found.median().item() if len(found) else None,
        "forwards": result.forwards.double().mean().item(),
        "backwards": result.backwards.double().mean().item(),
        "seconds": result.seconds,
        "wall": run.wall,
        "cpu_seconds": run.cpu,
        "peak_memory": result.peak_memory,
        **{name: value for name, value in (result.speed or {}).items() if name != "speed"},
    }


def is_peer(text: str) -> bool:
    """Whether this is somebody else's attack."""
    return text.split(",")[0] in PEERS


class _Bare(nn.Module):
    """The model as a network, for code that takes nothing else."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self._model = [model]  # in a list: not a part of the network
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        return self._model[0](images)


def peer_attack(text: str) -> Callable[[nn.Module, Tensor, Tensor], Tensor]:
    """Somebody else's attack, by a text such as ``advlib_sigma_zero,steps=1000``."""
    name, *options = text.split(",")
    given = {key: int(value) for key, value in (option.split("=") for option in options)}
    if name == "authors_sparse_pgd":
        code = load_peer("sPGD/autoattack", "spgd", ("skimage", "skimage.util"))

        def sparse_pgd(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
            attack = code.SparsePGD(net, k=given["k"], t=given["steps"], unprojected_gradient=False)
            found: Tensor = attack(images, labels)[0]
            return found

        return sparse_pgd
    library = load_peer("adversarial-library", "adv_lib.attacks", ("visdom",))
    if name == "advlib_fmn":
        return partial(library.fmn, norm=0, steps=given["steps"])
    return partial(library.sigma_zero, num_steps=given["steps"])


def peer_row(text: str, model: Classifier, images: Tensor, labels: Tensor) -> Row:
    attack, net = peer_attack(text), _Bare(model)
    if images.is_cuda:
        torch.cuda.reset_peak_memory_stats()
    with model.frozen(), redirect_stdout(io.StringIO()):
        torch.manual_seed(0)
        work = partial(attack, net, images.clone(), labels.clone())
        done = timed(work, images.device)
        adv = done.made.detach()
        with torch.no_grad():
            fooled = model(adv).argmax(dim=1) != labels
    counts = (adv != images).flatten(1).sum(dim=1)[fooled].double()
    return {
        "fooled": int(fooled.sum()),
        "elements": counts.mean().item(),
        "median_elements": counts.median().item() if len(counts) else None,
        "seconds": done.wall,
        "wall": done.wall,
        "cpu_seconds": done.cpu,
        "peak_memory": torch.cuda.max_memory_allocated() if images.is_cuda else None,
    }


def pass_rows(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    size: int,
    speeds: Sequence[Speed],
    kept: ModelPasses,
) -> Iterator[Row]:
    """How long passes of one batch size take at each speed, and in bfloat16 unconfirmed."""
    rows = torch.arange(size, device=images.device) % len(images)
    images, goal = images[rows], Goal(labels[rows])
    with model.frozen():
        with torch.no_grad():
            logits = model(images)
        for speed in speeds:
            with nullcontext(kept) if speed == kept.speed else ModelPasses(model, speed) as passes:
                passes.begin(images, logits)
                ask: Callable[[Tensor], Tensor] = partial(passes, goal=goal)
                yield {"speed": speed, **_timed(ask, images), **(passes.note() or {})}
                if passes._search is not None:
                    replayed = ReplayedModel(passes._search.coarse, CudaGraphs())
                    alone = "bfloat16" if speed == "fast" else "compiled alone"
                    yield {"speed": alone, **_timed(replayed, images)}


def _timed(ask: Callable[[Tensor], Tensor], images: Tensor) -> Row:
    def forward() -> None:
        with torch.no_grad():
            ask(images)

    def both() -> None:
        inputs = images.detach().requires_grad_()
        torch.autograd.grad(ask(inputs).sum(), inputs)

    times = {}
    for name, work in (("forward", forward), ("both", both)):
        for _ in range(PATIENCE + 2):
            work()
        done = timed(partial(_repeat, work), images.device)
        times[f"{name}_ms"] = 1e3 * done.wall / _REPEATS
    return {"images": len(images), **times}


def _repeat(work: Callable[[], None]) -> None:
    for _ in range(_REPEATS):
        work()


def overhead_row(text: str, model: Classifier, images: Tensor, labels: Tensor) -> Row:
    """The time of an attack at exact, over bare passes of the batches that it asked about."""
    assert isinstance(model.net, nn.Module)
    net = Recorder(model.net)
    noted = Classifier(net, mean=model.mean, std=model.std)
    result = run_attack(read_attack(text), noted, images, labels, batch_size=len(images))
    seconds, _ = bare(model, images, Goal(labels), list(net.passes))
    return {
        "attack": text,
        "images": len(images),
        "calls": len(net.passes),
        "mean_batch": sum(one.size for one in net.passes) / max(1, len(net.passes)),
        "sizes": len({one.size for one in net.passes}),
        "seconds": result.seconds,
        "bare_seconds": seconds,
    }


def measure(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    targets: Tensor | None,
    options: argparse.Namespace,
) -> Iterator[Row]:
    """All rows, the most important first."""
    with ModelPasses(model, "compiled") as kept:
        yield from _measured(model, images, labels, targets, options, kept)


def _measured(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    targets: Tensor | None,
    options: argparse.Namespace,
    kept: ModelPasses,
) -> Iterator[Row]:
    """The rows; ``kept`` are the passes of all runs at "compiled"."""

    def runs(attacks: list[str]) -> Iterator[tuple[str, Any]]:
        for text in attacks:
            yield from ((text, one) for one in ([""] if is_peer(text) else options.speed))

    def run(text: str, speed: Any) -> Row:
        if not speed:
            return peer_row(text, model, images, labels)
        attack = read_attack(text)
        work = partial(
            run_attack, attack, model, images, labels, targets=targets, batch_size=len(images)
        )
        done = timed(partial(work, speed=kept if speed == kept.speed else speed), model.device)
        return {"revision": attack.facts().revision, **attack_row(done)}

    for text, speed in runs(options.warm_up or options.attack):
        run(text, speed)
    if kept._compiled is not None:
        about = {"speed": kept.speed, "remark": kept._compiled.remark}
        yield {"kind": "compiling", **about, "seconds": kept._compiled.seconds}
    for turn in range(options.turns):
        for text, speed in list(runs(options.attack))[:: 1 - 2 * (turn % 2)]:
            about = {"kind": "attack", "attack": text, "speed": speed, "turn": turn}
            yield about | {"images": len(images)} | run(text, speed)
    for size in options.passes:
        for row in pass_rows(model, images, labels, size, options.speed, kept):
            yield {"kind": "pass", **row}
    for text in options.overhead:
        for turn in range(options.turns):
            yield {"kind": "overhead", "turn": turn, **overhead_row(text, model, images, labels)}


def parser() -> argparse.ArgumentParser:
    made = run_parser(__doc__)
    made.set_defaults(attack=[])
    for action in made._actions:
        if action.dest == "attack":
            action.required = False
    several = partial(made.add_argument, action="append", default=[])
    several("--warm-up", help="an attack to run first, in place of those that are measured")
    several("--overhead", help="an attack to compare with bare passes of its batch sizes")
    several("--passes", type=int, help="a batch size whose passes are timed")
    made.add_argument("--speed", nargs="+", choices=SPEEDS, default=SPEEDS)
    made.add_argument("--turns", type=int, default=2)
    made.add_argument("--seconds", type=float, default=float("inf"), help="stop after that long")
    return made


def main(arguments: list[str] | None = None) -> None:
    start, options = time.perf_counter(), parser().parse_args(arguments)
    model, images, labels, targets, about = open_run(options)
    device = model.device or torch.device("cpu")
    images, labels = images.to(device), labels.to(device)
    targets = None if targets is None else targets.to(device)
    about |= {"process": _PROCESS, "tf32": torch.backends.cudnn.allow_tf32}
    name = Path(options.model).name.rpartition(":")[2]
    goal = "_least_likely" if options.least_likely else ""
    with (options.out / f"{name}_{len(images)}{goal}.jsonl").open("a") as file:
        for row in measure(model, images, labels, targets, options):
            file.write(json.dumps(about | row) + "\n")
            file.flush()
            print(row, flush=True)
            if time.perf_counter() - start > options.seconds:
                print("out of time", flush=True)
                return


if __name__ == "__main__":
    main()
