"""The doctor lists what is here and what is missing, and fails over nothing."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

from pinprick import __version__
from pinprick.jobs import doctor
from pinprick.jobs.doctor import EXTRAS, Diagnosis, Extra, Item, diagnose

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _caches_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCH_HOME", "HF_HOME", "PINPRICK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def named(found: Diagnosis, kind: str, name: str) -> Item:
    (item,) = [item for item in found.items if (item.kind, item.name) == (kind, name)]
    return item


def test_every_extra_has_its_line_and_its_modules() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = wanted["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - {"dev", "docs"}
    brought = packages_distributions()
    for name, extra in EXTRAS.items():
        for module in extra.modules:
            if find_spec(module) is None:
                continue  # not every environment has every extra
            assert any(
                line.startswith(f"{package.lower()}>")
                for package in brought[module]
                for line in extras[name]
            ), (name, module)
        assert len(extra.modules) == len(extras[name])


def test_versions_and_devices_come_first() -> None:
    found = diagnose()
    assert named(found, "version", "pinprick").state == __version__
    assert named(found, "version", "torch").found
    assert named(found, "device", "cpu").found


def test_a_missing_extra_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"here": Extra("this", ("json",)), "gone": Extra("that", ("json", "no_such_module"))}
    monkeypatch.setattr(doctor, "EXTRAS", few)
    found = diagnose()
    assert named(found, "extra", "here") == Item("extra", "here", True, "installed", "this")
    gone = named(found, "extra", "gone")
    assert (gone.found, gone.detail) == (False, "that: pip install 'pinprick[gone]'")
    assert found.install == "pip install 'pinprick[gone]'"


def test_a_folder_without_code_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "not_a_package").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "EXTRAS", {"gone": Extra("that", ("not_a_package",))})
    assert not named(diagnose(), "extra", "gone").found


def test_datasets_and_caches_have_sizes(tmp_path: Path) -> None:
    (tmp_path / "sets" / "cifar-10-batches-py").mkdir(parents=True)
    (tmp_path / "sets" / "cifar-10-batches-py" / "batch").write_bytes(bytes(2_400_000))
    (tmp_path / "cache" / "torch" / "hub").mkdir(parents=True)
    (tmp_path / "cache" / "torch" / "hub" / "net.pth").write_bytes(bytes(1234))
    found = diagnose(tmp_path / "sets")
    assert named(found, "dataset", "cifar10").bytes == 2_400_000
    assert named(found, "dataset", "cifar10").state == "2 MB"
    assert "pinprick data get mnist" in named(found, "dataset", "mnist").detail
    assert named(found, "dataset", "fashion_sample").state == "installed"
    assert named(found, "cache", "datasets").detail == str(tmp_path / "sets")
    assert named(found, "cache", "torch").bytes == 1234
    assert named(found, "cache", "huggingface").state == "empty"


def test_without_torch_the_rest_is_listed() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pinprick.cli import main; main(['doctor', *sys.argv[1:]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--json"],
        env={"PYTHONPATH": str(ROOT / "src"), "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    items = {(one["kind"], one["name"]): one for one in json.loads(done.stdout)["items"]}
    assert items["version", "pinprick"]["state"] == __version__
    assert "torch" in items["device", "cpu"]["detail"]
    assert items["dataset", "all"]["state"] == "unknown"
    assert ("extra", "bench") in items
