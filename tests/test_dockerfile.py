"""The Dockerfile fits the package: extras, port and files that it names exist."""

import re
import tomllib
from pathlib import Path

from pinprick.cli.web import _PORT

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "Dockerfile").read_text().splitlines()


def said(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_it_installs_extras_that_exist() -> None:
    (extras,) = re.findall(r"\.whl\)\[(.*?)\]", " ".join(said("RUN")))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "web" in extras.split(",")
    assert f"[{extras}]" in (ROOT / "scripts" / "package").read_text()


def test_it_serves_the_page_on_its_port_and_not_as_root() -> None:
    assert said("EXPOSE") == [str(_PORT)]
    assert said("USER") == ["pinprick"]
    assert said("CMD")[0].startswith('["pinprick", "web", "--host", "0.0.0.0"')


def test_it_copies_files_that_exist_and_are_not_ignored() -> None:
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    for line in said("COPY")[:2]:
        for name in line.split()[:-1]:
            assert (ROOT / name).exists()
            assert f"!{name}" in kept
