"""The settings of the training of a generator for EGS-TSSA, with defaults for the image size."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinprick.errors import BadInput, UnknownName
from pinprick.settings import Settings, pixel_distance, read_value, setting, types_of

REFERENCE_PIXELS = 224**2  # of the images that the paper's weights of the losses are for
_SMALL = 64  # pixels per side

# The authors train at 224 pixels and above; what is for small images is our choice.
SMALL: dict[str, Any] = {
    "residual_blocks": 2,
    "block": 4,
    "lr": 1e-3,
    "batch_size": 256,
    "confidence": 100.0,
    "sparsity": 1e-5,
}
LARGE: dict[str, Any] = {"residual_blocks": 6, "block": 8, "lr": 2e-4, "batch_size": 16}


@dataclass(frozen=True, kw_only=True)
class GeneratorPlan(Settings):
    """How a generator is built and trained.

    Attributes:
        eps: Most that an element may change, where pixel values run from 0 to 1.
        base: Channels after the first convolution.
        residual_blocks: Number of residual blocks.
        block: Side of a block of the block mask, in pixels.
        keep: Share of the blocks that may change, ``tk`` in the paper; 1 for no block mask.
        pixels: Share of the pixels that the mask should have. The weight of the sparsity loss
            changes with every step until it has.
        confidence: Margin beyond which an image adds nothing to the loss.
        dense_epochs: Epochs of the first stage, without the sparsity loss.
        sparse_epochs: Epochs of the second stage, with it.
        dense_binary: Weight of the loss that makes the mask binary, in the first stage.
        sparse_binary: The same in the second stage.
        sparsity: Weight of the sparsity loss at the beginning of the second stage. This and the two
            before are for images of 224 pixels and are scaled by the number of pixels.
        quantised: Probability that a pixel gets the binary mask in a training step.
        lr: Learning rate of Adam; it falls to zero over the last fifth of the steps.
        batch_size: Images per step.
        crop: Largest random shift in pixels; the border is mirrored.
        flip: Whether images are mirrored left to right, in half of the epochs.
        watch_images: Training images that are measured after each epoch, without shifts. They
            decide which epoch is kept.
        exam_images: Held-out images, spread evenly, for the card; None for all.
    """

    eps: float = pixel_distance(1.0)
    base: int = setting(64, least=1, most=512)
    residual_blocks: int = setting(6, least=0, most=32)
    block: int = setting(8, least=1)
    keep: float = setting(0.6, above=0, most=1)
    pixels: float = setting(0.1, above=0, most=1)
    confidence: float = setting(0.0, least=0)
    dense_epochs: int = setting(10, least=0)
    sparse_epochs: int = setting(20, least=1)
    dense_binary: float = setting(1e-5, least=0)
    sparse_binary: float = setting(3e-4, least=0)
    sparsity: float = setting(1e-4, above=0)
    quantised: float = setting(0.5, least=0, most=1)
    lr: float = setting(2e-4, above=0, most=1)
    batch_size: int = setting(16, least=1)
    crop: int = setting(0, least=0)
    flip: bool = False
    watch_images: int = setting(1000, least=1)
    exam_images: int | None = setting(2000, least=1)

    @classmethod
    def owner(cls) -> str:
        return "training"

    @property
    def epochs(self) -> int:
        return self.dense_epochs + self.sparse_epochs


def build_generator_plan(
    size: tuple[int, int], options: Mapping[str, Any] | None = None
) -> GeneratorPlan:
    """The defaults for images of this height and width, with ``options``, which may be text."""
    hints = types_of(GeneratorPlan)
    values = dict(SMALL if max(size) <= _SMALL else LARGE)
    for key, value in (options or {}).items():
        if key not in hints:
            raise UnknownName("option of training a generator", key, hints)
        values[key] = read_value(value, hints[key], f"{key} of the training")
    plan = GeneratorPlan(**values)
    if plan.keep < 1 and plan.block > min(size):
        raise BadInput(
            f"blocks of {plan.block} pixels do not fit images of {size[0]} x {size[1]}; "
            "give a smaller block, or keep=1 for no block mask"
        )
    return plan
