"""``pinprick web``: the address that is printed, the token, the browser, and what is refused."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn

from pinprick.errors import BadInput, MissingExtra
from pinprick.web import serve as module
from pinprick.web.serve import bind, serve


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was sent to; the server itself ends at once."""
    pages: list[str] = []
    monkeypatch.setattr("webbrowser.open", pages.append)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    monkeypatch.setattr("pinprick.web.serve.threading.Thread", AtOnce)
    return pages


class AtOnce:
    """A thread of the browser that works when it is started."""

    def __init__(self, target: Callable[..., Any], args: tuple[Any, ...], daemon: bool) -> None:
        self.start = lambda: target(*args)


@pytest.fixture(autouse=True)
def no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinprick.web.job_queue.JobQueue.__init__", lambda self: None)
    monkeypatch.setattr("pinprick.web.job_queue.JobQueue.close", lambda self: None)


def test_the_address_is_printed_and_opened(opened: list[str]) -> None:
    shown: list[str] = []
    serve(show=shown.append)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", shown[0])
    assert opened == shown


def test_no_browser_is_opened_where_none_is_wanted(opened: list[str]) -> None:
    serve(show=lambda line: None, browse=False)
    assert opened == []


def test_beyond_loopback_the_address_has_a_token_and_a_warning(opened: list[str]) -> None:
    shown: list[str] = []
    serve(host="0.0.0.0", show=shown.append)
    serve(host="0.0.0.0", show=shown.append)
    assert re.fullmatch(r"http://[^/]+:\d+/\?token=[\w-]{32}", shown[0])
    assert "other machines" in shown[1]
    assert shown[0].partition("token=")[2] != shown[2].partition("token=")[2]


def test_a_port_that_is_taken_is_told_in_one_line() -> None:
    taken = bind("127.0.0.1", 0)
    port = taken.getsockname()[1]
    with pytest.raises(BadInput, match=f"cannot listen on 127.0.0.1:{port} .* try another --port"):
        bind("127.0.0.1", port)
    taken.close()


def test_a_missing_package_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'pinprick\[web\]'"):
        serve()


@pytest.mark.slow
def test_the_command_serves_a_page_until_it_is_interrupted() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "pinprick", "web", "--no-open", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode().strip() == f"http://127.0.0.1:{port}/"
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20).read()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert b"Drop a picture" in page
    assert process.returncode == 130
    assert said.decode().strip() == "pinprick: stopped"
