"""The number of CPU threads is measured, said, and always put back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from pinprick import BadInput, Classifier, fast_threads, threads
from pinprick.attacks import Greedy
from pinprick.jobs.attack import attack_pictures
from pinprick.jobs.attack_group import RunOptions
from pinprick.jobs.pictures import PictureSource
from pinprick.jobs.progress import Progress
from pinprick.threads import Threads, choose_threads, limited_threads


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of two cores, where torch has two threads by itself."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "available_cores", lambda: 2)
    with limited_threads(2):
        yield


@pytest.fixture
def model() -> Classifier:
    return Classifier(nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), name="small")


IMAGES = torch.rand(4, 3, 2, 2, generator=torch.Generator().manual_seed(0))


def passes_take(monkeypatch: pytest.MonkeyPatch, one: float, two: float) -> list[int]:
    """Let passes take so many seconds; the number of threads of each is noted in the list."""
    seen: list[int] = []

    def time_pass(model: Classifier, images: Tensor) -> float:
        seen.append(torch.get_num_threads())
        return one if seen[-1] == 1 else two

    monkeypatch.setattr(threads, "_time_pass", time_pass)
    return seen


def no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_time_pass", lambda *_: pytest.fail("a pass was timed"))


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("one", "default", "count"),
    [(0.001, 0.01, 1), (0.01, 0.01, 1), (0.01, 0.009, 1), (0.01, 0.007, 2)],
)
def test_one_thread_unless_the_default_is_clearly_faster(
    model: Classifier, monkeypatch: pytest.MonkeyPatch, one: float, default: float, count: int
) -> None:
    passes_take(monkeypatch, one, default)
    with fast_threads(model, IMAGES) as chosen:
        assert chosen.count == torch.get_num_threads() == count
        assert (chosen.one, chosen.default) == pytest.approx((one, default))
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two")
def test_the_number_is_put_back_after_an_error(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes_take(monkeypatch, 0.001, 0.01)
    during: list[int] = []

    def fail() -> None:
        with fast_threads(model, IMAGES):
            during.append(torch.get_num_threads())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert during == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two")
def test_a_hopeless_first_pass_is_not_repeated(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = passes_take(monkeypatch, 0.01, 3.0)
    assert choose_threads(model, IMAGES).count == 1
    assert seen.count(2) == 1


@pytest.mark.usefixtures("two")
def test_what_the_user_set_stays(model: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    no_pass(monkeypatch)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert choose_threads(model, IMAGES) == Threads(2, 2)
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(threads, "available_cores", lambda: 16)  # so that two are no default
    assert choose_threads(model, IMAGES) == Threads(2, 2)


@pytest.mark.usefixtures("two")
def test_functions_and_a_single_thread_are_not_timed(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_pass(monkeypatch)
    assert choose_threads(Classifier(lambda images: images.flatten(1)), IMAGES).count == 2
    assert choose_threads(model, IMAGES[:0]).count == 2
    with limited_threads(1):
        assert choose_threads(model, IMAGES).count == 1


@pytest.mark.usefixtures("two")
def test_a_given_number_is_taken(model: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    no_pass(monkeypatch)
    with fast_threads(model, IMAGES, count=3):
        assert torch.get_num_threads() == 3
    with pytest.raises(BadInput, match="must be at least 1, got 0"):
        choose_threads(model, IMAGES, count=0)


@pytest.mark.usefixtures("two")
def test_timing_changes_nothing() -> None:
    net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(12), nn.Dropout(), nn.Linear(12, 3)).train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.get_rng_state()
    with torch.inference_mode():
        chosen = choose_threads(Classifier(net), IMAGES)
    assert chosen.one is not None
    assert chosen.one > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert all(module.training for module in net.modules())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(param.grad is None for param in net.parameters())


def test_the_choice_in_words() -> None:
    fewer = Threads(1, 4, one=0.0021, default=1.26)
    assert str(fewer) == "1 CPU thread instead of 4: a pass takes 2.1 ms instead of 1.3 s"
    assert (
        str(Threads(4, 4, 0.2, 0.1)) == "4 CPU threads: a pass takes 100.0 ms instead of 200.0 ms"
    )
    assert str(Threads(3, 4)) == "3 CPU threads instead of 4"


class Remarks(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def remark(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.usefixtures("two")
def test_a_job_says_and_records_the_number_and_puts_it_back(
    model: Classifier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passes_take(monkeypatch, 0.001, 0.01)
    data = tmp_path / "four.safetensors"
    with torch.no_grad():
        labels = model(IMAGES).argmax(dim=1)
    save_file({"images": (IMAGES * 255).round().byte(), "labels": labels}, data)
    source = PictureSource(data=f"tensors:{data}")

    def run(progress: Progress, count: int | None) -> object:
        options = RunOptions(threads=count)
        outcome = attack_pictures(
            Greedy(), model, source, tmp_path / "out", run=options, figures=0, progress=progress
        )
        assert torch.get_num_threads() == 2
        return outcome.document["threads"]

    measured, given = Remarks(), Remarks()
    assert run(measured, None) == 1
    assert (
        "1 CPU thread instead of 2: a pass takes 1.0 ms instead of 10.0 ms; "
        "--threads 1 leaves out this test"
    ) in measured.said
    assert run(given, 2) == 2
    assert not [text for text in given.said if "thread" in text]
