"""Ctrl-C, SIGTERM and SIGKILL in ``attack`` and ``compare``, and ``--resume`` after them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from measured import measured, without_times
from PIL import Image
from torch import Tensor

from cli.conftest import Run, Shell
from pinprick import load_result
from pinprick.report.png import save_png as write_png

MODEL = '''
import os
from pathlib import Path

from cli_test_models import colours as _colours
from pinprick import Classifier
from torch import nn

calls = 0


class Stopping(nn.Module):
    """Sends a signal to its own process at the call that the file "stop" names."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images):
        global calls
        calls += 1
        if Path("stop").exists():
            call, number = map(int, Path("stop").read_text().split())
            if calls >= call:
                Path("stop").unlink()
                os.kill(os.getpid(), number)
        return self.net(images)


def stopping():
    model = _colours()
    return Classifier(
        Stopping(model.net), classes=model.classes, prepare=model.prepare, name="stopping"
    )
'''

GIVEN = ("photos", "--model", "stopping_model:stopping", "--batch-size", "2", "--figures", "0")
SEARCH = ("--attack", "sparse_rs", "--option", "k=9", "--option", "queries=20")
ATTACK = ("attack", *GIVEN, *SEARCH, "--save", "saved.safetensors")
SECOND = 50  # a call of the model in the second batch of three
TWO = ("--attacks", "greedy,sparse_rs", "--option", "sparse_rs.queries=20")
COMPARE = ("compare", *GIVEN[:-2], *TWO)


class Stopper:
    """Runs commands that get a signal at a chosen call of the model."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.run, self.folder = run, folder

    def at(self, call: int, number: int, *arguments: str) -> Shell:
        """What a command leaves behind that gets the signal at this call of the model."""
        from stopping_model import Stopping  # type: ignore[import-not-found]

        sys.modules[Stopping.__module__].calls = 0  # type: ignore[attr-defined]
        (self.folder / "stop").write_text(f"{call} {number}")
        shell = self.run(*arguments)
        assert not (self.folder / "stop").exists(), "the command ended before the call"
        return shell

    def calls(self, *arguments: str) -> int:
        """Number of calls of the model in a whole command."""
        from stopping_model import Stopping

        module: Any = sys.modules[Stopping.__module__]
        module.calls = 0
        assert self.run(*arguments).status == 0
        return int(module.calls)

    def document(self, name: str = "result.json") -> Any:
        return json.loads((self.folder / "pinprick-out" / name).read_text())

    def files(self) -> dict[str, bytes]:
        """The pictures that the command wrote."""
        return {path.name: path.read_bytes() for path in self.folder.glob("pinprick-out/*.png")}


@pytest.fixture
def stopper(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stopper]:
    (tmp_path / "stopping_model.py").write_text(MODEL)
    (tmp_path / "photos").mkdir()
    for number in range(5):
        colour = (150 + 10 * number, 100, 50)
        Image.new("RGB", (8, 8), colour).save(tmp_path / "photos" / f"{number}.png")
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Stopper(run, tmp_path)
    signal.signal(signal.SIGINT, before)
    for name in ("stopping_model", "cli_test_models"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_attack_shows_and_saves_what_it_found_and_goes_on(
    stopper: Stopper, tmp_path: Path, number: int
) -> None:
    stopper.run(*ATTACK)
    whole, pictures = stopper.document(), stopper.files()
    result = measured(load_result("saved.safetensors"))
    assert (whole["complete"], result["complete"]) == (True, True)
    assert not (tmp_path / "pinprick-out" / "unfinished").exists()

    shell = stopper.at(SECOND, number, *ATTACK)
    assert shell.status == 130
    assert shell.err.splitlines()[-1] == (
        "pinprick: stopped after 2 of 5 images; 1 finished batch saved in "
        "pinprick-out/unfinished, the results so far in pinprick-out/result.json and "
        "saved.safetensors; go on with: "
        f"pinprick attack --resume {' '.join(ATTACK[1:])}"
    )
    assert "fooled 0 of 2 images" in shell.out
    part, saved = stopper.document(), load_result("saved.safetensors")
    assert (part["complete"], len(part["images"])) == (False, 2)
    assert (saved.complete, len(saved)) == (False, 2)

    shell = stopper.run(*ATTACK, "--resume")
    assert (shell.status, without_times(stopper.document())) == (0, without_times(whole))
    assert "resuming after 1 finished batch in pinprick-out/unfinished\n" in shell.err
    assert measured(load_result("saved.safetensors")) == result
    assert stopper.files() == pictures
    assert not (tmp_path / "pinprick-out" / "unfinished").exists()


def test_the_counts_agree_where_a_stop_falls_between_a_batch_and_its_pictures(
    stopper: Stopper, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = 0

    def save_png(image: Tensor, path: Path) -> None:
        nonlocal saved
        saved += 1
        if saved == 7:  # two per image: the adversarial one and the clean one
            raise KeyboardInterrupt
        write_png(image, path)

    monkeypatch.setattr("pinprick.jobs.attack.save_png", save_png)
    shell = stopper.run(*ATTACK)
    assert (
        "stopped after 4 of 5 images; 2 finished batches saved in pinprick-out/unfinished, "
        "the results of the first 2 in pinprick-out/result.json and saved.safetensors; "
    ) in shell.err
    assert (len(stopper.document()["images"]), len(load_result("saved.safetensors"))) == (2, 2)


def test_an_attack_that_is_stopped_again_and_again_ends_with_the_same_result(
    stopper: Stopper,
) -> None:
    stopper.run(*ATTACK)
    whole = without_times(stopper.document())
    stopper.at(SECOND, signal.SIGINT, *ATTACK)
    for _ in range(3):
        shell = stopper.at(SECOND // 2, signal.SIGINT, *ATTACK, "--resume")
        assert shell.status == 130
    assert stopper.run(*ATTACK, "--resume").status == 0
    assert without_times(stopper.document()) == whole


def test_figures_of_finished_batches_are_not_drawn_again(
    stopper: Stopper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = (*ATTACK, "--figures", "1")
    stopper.run(*drawing)
    stopper.at(SECOND, signal.SIGINT, *drawing)
    monkeypatch.setattr("pinprick.jobs.attack.attack_figure", lambda *_, **__: pytest.fail("drawn"))
    assert stopper.run(*drawing, "--resume").status == 0


def test_a_figure_of_an_older_run_is_drawn_again(stopper: Stopper, tmp_path: Path) -> None:
    drawing = (*ATTACK, "--figures", "1")
    stopper.run(*drawing)
    stopper.at(SECOND, signal.SIGINT, *drawing)
    old = tmp_path / "pinprick-out" / "0-figure.png"
    old.write_bytes(b"of an older run")
    os.utime(old, (1, 1))
    assert stopper.run(*drawing, "--resume").status == 0
    assert old.read_bytes().startswith(b"\x89PNG")


def test_a_stopped_attack_names_the_images_of_a_set_that_it_has(stopper: Stopper) -> None:
    (stopper.folder / "photos" / "red").mkdir()
    for path in (stopper.folder / "photos").glob("*.png"):
        path.rename(path.parent / "red" / path.name)
    data = ("attack", "--data", "folder:photos[::2]", *GIVEN[1:], *SEARCH)
    calls = stopper.calls(*data)
    assert stopper.document()["data"] == "folder:photos[split=test][0::2]"
    stopper.at(calls - 9, signal.SIGINT, *data)
    assert stopper.document()["data"] == "folder:photos[split=test][0::2][0:2]"


def test_a_stopped_comparison_shows_and_saves_what_it_found_and_goes_on(
    stopper: Stopper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinprick.jobs.compare.compare_figure", lambda *_, **__: Figure((1, 1)))
    calls = stopper.calls(*COMPARE)
    whole, pictures = stopper.document("compare.json"), stopper.files()
    assert whole["complete"]
    for call, columns in ((calls // 2, 4), (calls - 20, 7)):
        shell = stopper.at(call, signal.SIGINT, *COMPARE)
        assert shell.status == 130
        assert f"pinprick: stopped after {columns} of 10 images in 2 attacks; " in shell.err
        pictures_in_table = [line for line in shell.out.splitlines() if line[1:2].isdigit()]
        assert len(pictures_in_table) == columns
        part = stopper.document("compare.json")
        assert (part["complete"], part["images"][0]["figure"]) == (False, None)
        assert sum(len(image["attacks"]) for image in part["images"]) == columns
        shell = stopper.run(*COMPARE, "--resume")
        assert shell.status == 0
        assert without_times(stopper.document("compare.json")) == without_times(whole)
        assert stopper.files().keys() == pictures.keys()


@pytest.mark.parametrize(("command", "name"), [(ATTACK, "result.json"), (COMPARE, "compare.json")])
def test_a_run_with_several_seeds_goes_on_in_the_seed_that_was_stopped(
    stopper: Stopper, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str
) -> None:
    monkeypatch.setattr("pinprick.jobs.compare.compare_figure", lambda *_, **__: Figure((1, 1)))
    seeds = (*command, "--seeds", "0,1")
    calls = stopper.calls(*seeds)
    whole = [without_times(stopper.document(f"seed-{seed}/{name}")) for seed in (0, 1)]
    shell = stopper.at(calls - 9, signal.SIGINT, *seeds)
    assert (shell.status, "Fooling rate" in shell.out) == (130, True)
    assert "saved in pinprick-out/seed-1/unfinished" in shell.err
    assert shell.err.rstrip().endswith("--seeds 0,1")
    assert stopper.document("summary.json")["complete"] is False
    refused = stopper.run(*seeds)
    assert (refused.status, "pinprick-out/seed-1 has" in refused.err) == (2, True)
    again = calls - stopper.calls(*seeds, "--resume")
    assert again > calls // 2, "the seed that had finished is not run again"
    assert stopper.document("summary.json")["complete"] is True
    assert [without_times(stopper.document(f"seed-{seed}/{name}")) for seed in (0, 1)] == whole


def test_the_summary_is_shown_where_nothing_but_finished_seeds_is_left(stopper: Stopper) -> None:
    seeds = (*ATTACK, "--seeds", "0,1")
    calls = stopper.calls(*seeds)
    stopper.at(calls - 9, signal.SIGINT, *seeds, "--no-resume")
    shutil.rmtree(stopper.folder / "pinprick-out" / "seed-1")
    shell = stopper.at(5, signal.SIGINT, *seeds, "--resume")
    assert (shell.status, "Fooling rate" in shell.out) == (130, True)
    assert "stopped before the first batch of seed 1 was finished; " in shell.err


def test_a_process_that_is_killed_leaves_whole_files_and_is_resumed(
    stopper: Stopper, tmp_path: Path
) -> None:
    stopper.run(*ATTACK)
    whole = without_times(stopper.document())
    (tmp_path / "pinprick-out" / "result.json").unlink()
    (tmp_path / "stop").write_text(f"{SECOND} {signal.SIGKILL}")
    here = os.pathsep.join((str(tmp_path), *sys.path))
    dead = subprocess.run(
        [sys.executable, "-m", "pinprick", *ATTACK],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": here},
        capture_output=True,
        check=False,
    )
    assert dead.returncode == -signal.SIGKILL
    part = stopper.document()
    assert (part["complete"], len(part["images"])) == (False, 2)
    assert not load_result("saved.safetensors").complete
    assert stopper.run(*ATTACK, "--resume").status == 0
    assert without_times(stopper.document()) == whole


def test_nothing_is_left_behind_where_no_batch_was_finished(
    stopper: Stopper, tmp_path: Path
) -> None:
    shell = stopper.at(5, signal.SIGINT, *ATTACK)
    assert (shell.status, shell.out) == (130, "")
    last = "pinprick: stopped before the first batch was finished; nothing is saved"
    assert shell.err.splitlines()[-1] == last
    assert not (tmp_path / "pinprick-out" / "unfinished").exists()
    assert stopper.run(*ATTACK).status == 0


def test_a_run_that_was_stopped_is_not_overwritten_by_mistake(
    stopper: Stopper, tmp_path: Path
) -> None:
    stopper.run(*ATTACK)
    whole = without_times(stopper.document())
    stopper.at(SECOND, signal.SIGINT, *ATTACK)
    shell = stopper.run(*ATTACK)
    assert (shell.status, shell.out) == (2, "")
    assert shell.err == (
        "pinprick: pinprick-out has 1 finished batch of a run that was stopped: --resume goes "
        "on, --no-resume starts again, and --out names another folder\n"
    )
    (tmp_path / "pinprick-out" / "unfinished" / "mine.txt").write_text("not pinprick's")
    assert stopper.run(*ATTACK, "--no-resume").status == 0
    assert without_times(stopper.document()) == whole
    left = [path.name for path in (tmp_path / "pinprick-out" / "unfinished").iterdir()]
    assert left == ["mine.txt"]


def test_a_folder_of_the_users_own_with_the_same_name_stays(
    stopper: Stopper, tmp_path: Path
) -> None:
    own = tmp_path / "pinprick-out" / "unfinished" / "run.json"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    before = own.parent / "README.txt"
    assert stopper.run(*ATTACK, "--resume").status == 0
    assert (own.exists(), before.exists()) == (True, False)


@pytest.mark.parametrize("seeds", ["0", "0,1"])
@pytest.mark.parametrize("command", [ATTACK, (*COMPARE, "--figures", "0")])
def test_a_run_that_has_finished_is_printed_again_without_running(
    stopper: Stopper, command: tuple[str, ...], seeds: str
) -> None:
    whole = (*command, "--seeds", seeds)
    first = stopper.run(*whole, "--format", "latex")
    again = (*whole, "--resume", "--format")
    assert stopper.calls(*again, "latex") == 0
    assert stopper.run(*again, "latex").out == first.out
    shell = stopper.run(*again, "markdown")
    assert shell.out.startswith("Fooling rate and cost per image\n\n| attack")
    assert shell.err.startswith("the run in pinprick-out has finished: its saved results are shown")
    assert stopper.calls(*whole) > 0, "without --resume it is replaced"


def test_a_finished_run_of_something_else_is_not_printed(stopper: Stopper) -> None:
    stopper.run(*ATTACK)
    for changes, key in (
        (("--seed", "1"), "seed"),
        (("--option", "alpha=0.5"), "attacks"),
        (("--target", "blue"), "target"),
        (("--max-forwards", "3"), "max forwards"),
        (("--model", "cli_test_models:colours"), "model"),
    ):
        shell = stopper.run(*ATTACK, "--resume", *changes)
        assert (shell.status, shell.out) == (2, "")
        assert f"the finished run in pinprick-out has another {key}; " in shell.err


def test_resume_starts_from_the_beginning_where_nothing_was_stopped(stopper: Stopper) -> None:
    assert stopper.run(*ATTACK, "--resume").status == 0
    assert stopper.document()["complete"]


def test_other_settings_are_refused(stopper: Stopper) -> None:
    stopper.at(SECOND, signal.SIGINT, *ATTACK)
    before = stopper.document()
    for changes, message in (
        (("--seed", "1"), "has seed 0, this one has 1;"),
        (("--option", "alpha=0.5"), "has alpha none, this one has 0.5;"),
        (("--batch-size", "3"), "has batch_size 2, this one has 3;"),
        (("--model", "cli_test_models:colours"), "has model stopping, this one has colours;"),
        (("--target", "blue"), "has other targets;"),
    ):
        shell = stopper.run(*ATTACK, *changes, "--resume")
        assert (shell.status, shell.out) == (2, "")
        last = shell.err.splitlines()[-1]
        assert last.startswith(
            f"pinprick: the run saved in pinprick-out/unfinished/part-0 {message}"
        )
        assert stopper.document() == before


@pytest.mark.parametrize("command", [ATTACK, COMPARE], ids=["attack", "compare"])
def test_a_resumed_run_takes_the_number_of_threads_that_it_had(
    stopper: Stopper, command: tuple[str, ...]
) -> None:
    stopper.at(SECOND, signal.SIGINT, *command, "--threads", "2")
    shell = stopper.run(*command, "--resume", "--threads", "1")
    assert (shell.status, "has threads 2, this one has 1;" in shell.err) == (2, True)
    assert stopper.run(*command, "--resume").status == 0


def test_other_pictures_and_broken_batches_are_refused(stopper: Stopper, tmp_path: Path) -> None:
    stopper.at(SECOND, signal.SIGINT, *ATTACK)
    batch = tmp_path / "pinprick-out" / "unfinished" / "part-0" / "batch-00000.safetensors"
    content = batch.read_bytes()
    batch.write_bytes(content[:-9])
    shell = stopper.run(*ATTACK, "--resume")
    assert (shell.status, shell.err.count("Traceback")) == (2, 0)
    assert "remove batch-00000.safetensors to attack its images again" in shell.err
    batch.write_bytes(content)
    Image.new("RGB", (8, 8), (1, 2, 3)).save(tmp_path / "photos" / "0.png")
    shell = stopper.run(*ATTACK, "--resume")
    assert (shell.status, "has other images;" in shell.err) == (2, True)
