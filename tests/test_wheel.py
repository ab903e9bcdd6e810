"""The wheel: what is in it, and what it can do where only its own packages are installed.

An environment gets links to the packages of this one, so that nothing is fetched.
"""

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_BYTES = 4_000_000

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]
requirements = pytest.importorskip("packaging.requirements", reason="needs the extra dev")
pytest.importorskip("build", reason="needs the extra dev")
pytest.importorskip("hatchling", reason="needs the extra dev")


def call(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with the packages of its own Python alone."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=clean)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The source distribution, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(made: list[Path]) -> Path:
    (path,) = [path for path in made if path.suffix == ".whl"]
    return path


def needed(texts: Iterable[str], extras: Iterable[str] = ("",)) -> dict[str, Path]:
    """Where the packages lie that these requirements need, with those that they need in turn."""
    found: dict[str, Path] = {}
    for text in texts:
        wanted = requirements.Requirement(text)
        if wanted.marker and not any(wanted.marker.evaluate({"extra": one}) for one in extras):
            continue
        try:
            package = distribution(wanted.name)
        except PackageNotFoundError:
            continue  # it is then missing there, too
        if wanted.name not in found:
            for file in package.files or ():
                top = file.parts[0]
                if top not in ("..", "__pycache__"):
                    found[f"{wanted.name}/{top}"] = Path(str(package.locate_file(top)))
            found |= needed(package.requires or (), wanted.extras or ("",))
    return found


def install(folder: Path, wheel: Path, *extras: str) -> Path:
    """An environment with the wheel and these extras; gives its folder of commands."""
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    texts = [*PROJECT["dependencies"]]
    for extra in extras:
        texts += PROJECT["optional-dependencies"][extra]
    for source in needed(texts).values():
        if not (site / source.name).exists():
            (site / source.name).symlink_to(source)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    command = folder / "bin" / "pinprick"
    command.write_text(
        f"#!{folder}/bin/python\nimport sys\nfrom pinprick.cli import main\nsys.exit(main())\n"
    )
    command.chmod(0o755)
    return command


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command ``pinprick`` of an environment without extras."""
    return install(tmp_path_factory.mktemp("plain") / "env", wheel)


def test_the_distributions_can_be_uploaded(made: list[Path]) -> None:
    pytest.importorskip("twine")
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, made)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_is_small_and_holds_the_package_alone(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "pinprick").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == source
    for extra in PROJECT["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in text


def test_without_extras_the_commands_work(plain: Path, tmp_path: Path) -> None:
    helped = call(plain, "--help", cwd=tmp_path)
    assert (helped.returncode, helped.stderr) == (0, "")
    listed = call(plain, "attacks", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "sigma_zero" in listed.stdout
    attacked = call(
        *(plain, "attack", "--data", "fashion_sample", "--limit", "2", "--figures", "0"),
        *("--model", "pinprick:fashion_cnn", "--attack", "greedy"),
        cwd=tmp_path,
    )
    assert attacked.returncode == 0, attacked.stderr
    assert "fooled" in attacked.stdout


def test_without_extras_the_doctor_says_so(plain: Path, tmp_path: Path) -> None:
    found = json.loads(call(plain, "doctor", "--json", cwd=tmp_path).stdout)
    missing = [one["name"] for one in found["items"] if one["kind"] == "extra" and not one["found"]]
    assert set(missing) == set(PROJECT["optional-dependencies"]) - {"dev", "docs"}
    (here,) = [one for one in found["items"] if one["name"] == "pinprick"]
    assert here["detail"].startswith(str(plain.parents[1]))


PLAN = """
models = ["pinprick:fashion_cnn"]
data = ["fashion_sample[0:2]"]
attacks = [{name = "fgsm"}]
"""
SMALL = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(784, 4), nn.ReLU(), nn.Linear(4, 10))
    layers[3].bias.data[9] = 2.0  # the label of the first image
    return layers
"""


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("demo", "attack"),
        ("bench", "bench run plan.toml --store store"),
        ("bounds", "prove found.safetensors"),
        ("onnx", "attack a.png --model file:net.onnx"),
        ("timm", "attack a.png --model timm:resnet18"),
        ("web", "web --no-open"),
    ],
)
def test_a_missing_extra_is_one_line_with_the_way_out(
    plain: Path, tmp_path: Path, extra: str, command: str
) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    (tmp_path / "net.onnx").write_bytes(b"")
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "small.py").write_text(SMALL)
    if extra == "bounds":
        save = "attack --data fashion_sample --limit 1 --labels-by-number --figures 0 --attack fgsm"
        save += " --model small:net --save found.safetensors"
        saved = call(plain, *save.split(), cwd=tmp_path)
        assert saved.returncode == 0, saved.stderr
    assert_refused(call(plain, *command.split(), cwd=tmp_path), extra)


def test_the_engine_ray_needs_its_extra(wheel: Path, tmp_path: Path) -> None:
    command = install(tmp_path / "env", wheel, "bench")
    (tmp_path / "plan.toml").write_text(PLAN)
    asked = "bench run plan.toml --store store --engine ray"
    assert_refused(call(command, *asked.split(), cwd=tmp_path), "ray")


def assert_refused(done: subprocess.CompletedProcess[str], extra: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].endswith(f"pip install 'pinprick[{extra}]'"), done.stderr
    assert "Traceback" not in done.stderr


def test_with_the_demo_the_photographs_are_attacked(wheel: Path, tmp_path: Path) -> None:
    command = install(tmp_path / "env", wheel, "demo")
    done = call(command, "attack", "--attack", "fgsm", "--figures", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pinprick-out" / "result.json").exists()
