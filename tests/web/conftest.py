"""A server without a socket: requests go straight to the application."""

import io
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from pinprick.web.app import make_app
from pinprick.web.safety import Rules
from pinprick.web.workbench import Workbench

HOME = "http://127.0.0.1:8431"
MODEL = "pinprick:fashion_cnn"


def picture_bytes(kind: str = "PNG", size: tuple[int, int] = (28, 28)) -> bytes:
    """A bright coat on black, roughly."""
    pixels = np.zeros((*size[::-1], 3), dtype=np.uint8)
    pixels[size[1] // 8 : -size[1] // 8, size[0] // 4 : -size[0] // 4] = 190
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def copy_store(folder: Path, *, cells: int) -> None:
    """Some cells of a published store, in a folder of their own."""
    published = Path(__file__).parents[2] / "results" / "wifgsm" / "store"
    folder.mkdir(parents=True)
    shutil.copy(published / "store.json", folder)
    for file in sorted(published.glob("cells/*/*.parquet"))[:cells]:
        (folder / "cells" / file.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / "cells" / file.parent.name)


@pytest.fixture
def workbench() -> Iterator[Workbench]:
    made = Workbench([MODEL, "pinprick:mnist_cnn"], "cpu")
    yield made
    made.queue.close()


@pytest.fixture
def client(workbench: Workbench) -> Iterator[TestClient]:
    app = make_app(workbench, Rules(host="127.0.0.1"), Path.cwd())
    with TestClient(app, base_url=HOME, headers={"origin": HOME}) as made:
        yield made


@pytest.fixture
def picture(client: TestClient) -> str:
    answer = client.post("/pictures?name=coat.png", content=picture_bytes())
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


Start = Callable[..., str]


@pytest.fixture
def start(client: TestClient, picture: str) -> Start:
    """Queues an attack, and gives its id."""

    def ask(**fields: Any) -> str:
        asked = {"picture": picture, "model": MODEL, "attack": "pinprick", "effort": "fast"}
        answer = client.post("/jobs", json={**asked, **fields})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    return ask


def ended(client: TestClient, job: str, seconds: float = 30.0) -> dict[str, Any]:
    """The job, once it is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        document: dict[str, Any] = client.get(f"/jobs/{job}").json()
        if document["state"] in ("done", "stopped", "failed"):
            return document
        time.sleep(0.02)
    raise AssertionError(f"the job is not over after {seconds} s: {document}")


def running(client: TestClient, job: str, seconds: float = 30.0) -> None:
    """Wait until the job has made its first step."""
    until = time.monotonic() + seconds
    while not client.get(f"/jobs/{job}").json()["steps"]:
        assert time.monotonic() < until, "the job does not start"
        time.sleep(0.02)
