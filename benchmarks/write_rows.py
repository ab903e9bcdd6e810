"""Rows of a script as JSON, with all that is needed to measure them again."""

import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import pinprick
from pinprick.files import write_text


def surroundings(device: str | torch.device) -> dict[str, Any]:
    """Command, commit, versions, device and date of a measurement."""
    cuda = torch.device(device).type == "cuda"
    return {
        "command": " ".join(["python", *sys.argv]),
        "commit": _commit(),
        "pinprick": pinprick.__version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if cuda else _processor(),
        "threads": torch.get_num_threads(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], device: str | torch.device) -> None:
    """Write rows with their surroundings; each row says how many images it is of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**surroundings(device), "rows": list(rows)}
    write_text(path, json.dumps(document, indent=1) + "\n")
    print(f"wrote {path}", file=sys.stderr)


def _commit() -> str:
    """The commit of this repository; empty if unknown."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    """The name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):  # not Linux
        return platform.processor() or platform.machine()
