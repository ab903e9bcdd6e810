"""``pinprick doctor``: a table, or JSON."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run
from pinprick.jobs import doctor
from pinprick.jobs.doctor import Extra


def test_the_table_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"gone": Extra("that", ("no_such_module",))})
    shell = run("doctor")
    assert shell.status == 0
    assert "extra gone" in shell.out
    assert shell.out.splitlines()[-1] == "every missing extra: pip install 'pinprick[gone]'"
    monkeypatch.setattr(doctor, "EXTRAS", {"here": Extra("this", ("json",))})
    assert run("doctor").out.splitlines()[-1] == "no extra is missing"


def test_json_has_every_line_and_the_command(run: Run, tmp_path: Path) -> None:
    document = json.loads(run("doctor", "--root", tmp_path, "--json").out)
    kinds = [item["kind"] for item in document["items"]]
    assert list(dict.fromkeys(kinds)) == ["version", "device", "extra", "dataset", "cache"]
    assert isinstance(document["install"], str)
