"""Another process, with other hashes, gives the same images."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from contract.baseline import baseline
from contract.specifications import SPECS

pytestmark = pytest.mark.plain


def digests() -> dict[str, str]:
    """What each attack makes of the images of the baseline, as a short text."""
    return {
        name: hashlib.sha256(baseline(name).result.adversarial.numpy().tobytes()).hexdigest()
        for name in SPECS
    }


@pytest.mark.slow
def test_another_process_gives_the_same_images_and_keeps_its_random_numbers() -> None:
    """Python's own random numbers are looked at here, as shape checks draw some of them."""
    code = (
        "import json, random, sys; sys.path.insert(0, sys.argv[1]);"
        "from contract.test_other_process import digests; before = random.getstate();"
        "print(json.dumps(digests())); assert random.getstate() == before"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(os.path.dirname(__file__))],
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == digests()
