"""The changed pixels of an explanation with their old and new values: save, load, rebuild.

An explanation lists them per group, so that the adversarial image can be rebuilt from the clean one
bit for bit. A dense attack changes too many pixels for a JSON file; they have their own file.
"""

from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.explain.noise.explanation import Explanation, Values
from pinprick.files import atomic_write
from pinprick.types import Picture


def rebuild(explanation: Explanation, clean: Picture) -> Picture:
    """The adversarial image that was explained, from its clean image.

    Args:
        explanation: An explanation that lists its pixels.
        clean: The clean image as the model got it, in [0, 1].
    """
    listed = sum(len(group.pixels) for group in explanation.groups)
    if listed != explanation.changed_pixels:
        raise BadInput(
            f"the explanation lists {listed} of {explanation.changed_pixels} changed pixels; "
            "load the others with load_changes"
        )
    adversarial = clean.clone()
    if not listed:
        return adversarial
    pixels, _, before, after = _tensors(explanation)
    rows, columns = pixels.long().unbind(dim=1)
    inside = (rows < clean.shape[1]) & (columns < clean.shape[2])
    if len(clean) != before.shape[1] or not inside.all():
        raise BadInput(f"an image of shape {tuple(clean.shape)} is not the one that was explained")
    found = clean[:, rows, columns].T.cpu().double()
    if not torch.equal(found, before):
        row = int((found != before).any(dim=1).nonzero()[0])
        raise BadInput(
            f"the clean image has {found[row].tolist()} at pixel {pixels[row].tolist()}, but the "
            f"explanation has {before[row].tolist()}; pass the image as the model got it"
        )
    adversarial[:, rows, columns] = after.T.to(clean)
    return adversarial


def without_pixels(explanation: Explanation) -> Explanation:
    """The same without the lists of its changed pixels, which are long for dense attacks."""
    groups = (replace(group, pixels=(), before=(), after=()) for group in explanation.groups)
    return replace(explanation, groups=tuple(groups))


def save_changes(explanation: Explanation, path: Path) -> None:
    """Write the lists of changed pixels to a safetensors file."""
    pixels, groups, before, after = _tensors(explanation)
    tensors = {"pixels": pixels, "groups": groups, "before": before, "after": after}
    with atomic_write(path) as place:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, place)


def load_changes(explanation: Explanation, path: Path) -> Explanation:
    """The explanation with the lists that ``save_changes`` wrote."""
    try:
        tensors = load_file(path)
        pixels, numbers, before, after = (
            tensors[name] for name in ("pixels", "groups", "before", "after")
        )
    except (OSError, SafetensorError, KeyError) as error:
        raise BadInput(f"{path} holds no changed pixels as pinprick writes them") from error
    if len(pixels) != explanation.changed_pixels:
        raise BadInput(
            f"{path} holds {len(pixels)} changed pixels, the explanation has "
            f"{explanation.changed_pixels}"
        )
    groups = []
    for group in explanation.groups:
        own = numbers == group.number
        groups.append(
            replace(
                group,
                pixels=tuple((row, column) for row, column in pixels[own].tolist()),
                before=as_values(before[own]),
                after=as_values(after[own]),
            )
        )
    return replace(explanation, groups=tuple(groups))


def as_values(values: Tensor) -> Values:
    """A tensor of (pixels, channels) as plain numbers."""
    return tuple(tuple(pixel) for pixel in values.tolist())


def _tensors(explanation: Explanation) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pixels, their groups, and their old and new values in double precision."""
    groups = explanation.groups
    numbers = [group.number for group in groups for _ in group.pixels]
    return (
        torch.tensor([pixel for group in groups for pixel in group.pixels], dtype=torch.int32),
        torch.tensor(numbers, dtype=torch.int32),
        torch.tensor([old for group in groups for old in group.before], dtype=torch.double),
        torch.tensor([new for group in groups for new in group.after], dtype=torch.double),
    )
