"""A progress bar in a notebook, and on stderr everywhere else."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pinprick import Classifier, run_attack
from pinprick.attacks import IFGSM
from pinprick.progress_bar import in_notebook, progress_bar


class Display:
    """As much of ``IPython.display`` as a bar needs."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, text: str, *, display_id: bool) -> Any:
        assert display_id
        self.shown.append(text)
        return SimpleNamespace(update=self.shown.append)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Display:
    display, ipython = Display(), ModuleType("IPython")
    shell = type("ZMQInteractiveShell", (), {})()
    vars(ipython).update(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    return display


def test_a_bar_in_a_notebook_is_replaced_as_work_goes_on(notebook: Display) -> None:
    assert in_notebook()
    with progress_bar("<attacking>", 10) as advance:
        advance(4)
        advance(3)
    assert 'value="0" max="10"' in notebook.shown[0]
    assert 'value="7" max="10"' in notebook.shown[-1]
    assert "7 of 10 images" in notebook.shown[-1]
    assert "&lt;attacking&gt;" in notebook.shown[0]
    assert len(notebook.shown) == 2  # quick steps are not drawn


def test_a_total_may_be_unknown(notebook: Display) -> None:
    with progress_bar("attacking", None) as advance:
        advance(4)
    assert "<progress></progress> 4 images" in notebook.shown[-1]


def test_an_attack_in_a_notebook_draws_there(
    notebook: Display,
    linear: Classifier,
    images: Any,
    labels: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_attack(IFGSM(), linear, images, labels, progress=True)
    assert "6 of 6 images" in notebook.shown[-1]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    shell = type("TerminalInteractiveShell", (), {})()
    vars(ipython).update(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()
