"""Stores on the page: those below the working folder are read, and nothing else."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages.results import sample, write_store
from starlette.testclient import TestClient

from pinprick.web import reports
from pinprick.web.app import make_app
from pinprick.web.safety import Rules
from pinprick.web.stores import Stores
from pinprick.web.workbench import Workbench
from web.conftest import HOME, copy_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a store of three cells, beside one that it must not show."""
    for name in ("work/made/store", "elsewhere"):
        copy_store(tmp_path / name, cells=3)
    work = tmp_path / "work"
    (work / "link").symlink_to(tmp_path / "elsewhere")
    (work / "half").mkdir()
    shutil.copy(tmp_path / "elsewhere" / "store.json", work / "half")
    (work / "half" / "cells").symlink_to(tmp_path / "elsewhere" / "cells")
    shutil.copytree(work / "made" / "store", work / ".hidden" / "store")
    return work


@pytest.fixture
def stores(workbench: Workbench, folder: Path) -> Iterator[TestClient]:
    app = make_app(workbench, Rules(host="127.0.0.1"), folder)
    with TestClient(app, base_url=HOME) as client:
        yield client


def test_only_stores_below_the_working_folder_are_listed(stores: TestClient) -> None:
    listed = stores.get("/stores/list").json()
    assert listed == {"names": ["made/store"], "folder": "work"}


@pytest.mark.parametrize(
    "name",
    ["", "..", "../elsewhere", "link", "half", ".hidden/store", "made/../made/store", "/etc"],
)
@pytest.mark.parametrize("what", ["board", "cells", "rows", "report.html"])
def test_no_path_leaves_the_working_folder(stores: TestClient, name: str, what: str) -> None:
    answer = stores.get(f"/stores/{what}", params={"store": name, "cell": "a"})
    assert answer.status_code == 400
    assert "no store is called" in answer.json()["error"]


@pytest.mark.parametrize("unit", ["pixels", "elements"])
def test_a_store_shows_its_leaderboard(stores: TestClient, unit: str) -> None:
    board = stores.get("/stores/board", params={"store": "made/store", "unit": unit}).json()
    attacks, models = board["tables"][:2]
    assert attacks["caption"].startswith(f"Attacks by optimality in {unit}")
    assert models["caption"].startswith("Models by robust accuracy")
    assert all(len(row) == len(attacks["columns"]) for row in attacks["rows"])
    assert "optimality" in board["explain"].lower()


def test_a_wrong_unit_is_refused(stores: TestClient) -> None:
    answer = stores.get("/stores/board", params={"store": "made/store", "unit": "rows"})
    assert answer.status_code == 400


def test_cells_and_their_images_are_listed(stores: TestClient) -> None:
    cells = stores.get("/stores/cells", params={"store": "made/store"}).json()
    assert len(cells) == 3
    for cell in cells:
        assert 0 <= cell["fooled"] <= cell["correct"] <= cell["images"]
        asked = {"store": "made/store", "cell": cell["cell"]}
        rows = stores.get("/stores/rows", params=asked).json()
        assert len(rows) == min(1000, cell["images"])
        assert sum(row["success"] for row in rows) >= cell["fooled"]
    answer = stores.get("/stores/rows", params={"store": "made/store", "cell": "../x"})
    assert "no such cell" in answer.json()["error"]


def test_a_failed_attack_counts_as_infinity_in_the_median_of_a_cell(tmp_path: Path) -> None:
    results = [sample([3, 5, 0], "mostly"), sample([3, 0, 0], "rarely")]
    write_store(tmp_path / "store", results, error="no memory")
    medians = {cell["attack"]: cell["pixels"] for cell in Stores(tmp_path).cells("store")}
    assert medians == {"mostly": 5.0, "rarely": None, "broken": None}


def test_the_report_of_a_store_is_served_in_a_sandbox(stores: TestClient, folder: Path) -> None:
    answer = stores.get("/stores/report.html", params={"store": "made/store"})
    assert answer.status_code == 200
    assert str(folder) not in answer.text  # where the folder is, other machines need not know
    assert answer.text.lstrip().lower().startswith("<!doctype html>")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


def test_few_reports_of_stores_wait_at_a_time(
    stores: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "_room", threading.BoundedSemaphore(1))
    with reports._room:
        answer = stores.get("/stores/report.html", params={"store": "made/store"})
    assert answer.status_code == 429
    assert "being made" in answer.text
    assert stores.get("/stores/report.html", params={"store": "made/store"}).status_code == 200


def test_a_folder_without_stores_has_none(tmp_path: Path) -> None:
    assert Stores(tmp_path).names() == []
    assert Stores(tmp_path / "missing").names() == []
