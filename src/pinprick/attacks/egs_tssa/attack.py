"""EGS-TSSA: a network that is trained once writes a sparse perturbation for any image in one pass.

Ming, Ren, Wang, Feng: Transferable structural sparse adversarial attack via exact group sparsity
training. CVPR 2024.

    r, rho = generator(x)              one pass
    B      = block_mask(x)             one forward and one backward pass of the model
    m      = 1[rho >= 0.5] * B
    x'     = clip(x + r * m, 0, 1)

``pinprick train-generator`` trains a generator for one model, one size of images and one goal:
untargeted, or one class to reach. Other models, images and targets are refused.

One pass does not fool every image. ``fallback`` names an attack for the images that are left.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.egs_tssa.block_mask import BlockMask, block_mask
from pinprick.attacks.egs_tssa.generator import Generator
from pinprick.attacks.egs_tssa.saved_generator import (
    GeneratorCard,
    find_folder,
    load_generator,
    read_generator_card,
)
from pinprick.parts.box import keep_allowed
from pinprick.parts.largest import mask_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Allowed, Images

_GREY_LEVELS = 255


@dataclass(frozen=True, kw_only=True)
class EGSTSSA(Attack):
    """The perturbation that a trained generator writes, in the blocks that the model weighs most.

    Attributes:
        weights: The generator: a name of those that come with the package, or the folder that
            ``pinprick train-generator`` wrote.
        sha256: SHA-256 of its weights; other weights are refused. Empty text for those that are
            there.
        k: Most pixels to change, those of the largest change; None for all that the mask has.
        fallback: Attack for the images that the generator does not fool; None for none. One more
            forward pass per image finds these, and all of its passes count.
    """

    card: ClassVar[Card] = Card(
        name="egs_tssa",
        title="EGS-TSSA",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="network",
        targeted=True,
        masked=True,
        paper="CVPR 2024",
        differences=(
            "Changes are rounded to 8-bit levels. So results do not depend on the batch and "
            "survive saving as PNG.",
            "If a side is not a multiple of 4, the last rows and columns of the generator's "
            "output are cut. The authors' code cuts the first row, which shifts the output.",
            "A targeted generator succeeds when the target is reached. The authors' code "
            "compares with the clean prediction.",
            "Training adapts the weight of the sparsity loss until the mask has the wanted "
            "share of pixels.",
            "The authors have no networks for images of 32 pixels. Two residual blocks and 4 x "
            "4 blocks are our choice.",
        ),
    )

    weights: str = "cifar10_resnet20"
    sha256: str = ""
    k: int | None = setting(None, least=1)
    fallback: Attack | None = None

    def __post_init__(self) -> None:
        if not self.sha256:
            digest = read_generator_card(find_folder(self.weights))[1]
            object.__setattr__(self, "sha256", digest)

    def facts(self) -> Card:
        card, _ = read_generator_card(find_folder(self.weights))
        ranked = int(card.keep < 1)
        after = None if self.fallback is None else self.fallback.facts()
        forwards: int | None = ranked
        backwards: int | None = ranked
        if after is not None:
            forwards = None if after.max_forwards is None else ranked + 1 + after.max_forwards
            backwards = None if after.max_backwards is None else ranked + after.max_backwards
        return replace(
            self.card,
            inputs=card.inputs,
            targeted=card.target is not None,
            masked=after is None or after.masked,
            random=after is not None and after.random,
            max_forwards=forwards,
            max_backwards=backwards,
        )

    def __call__(self, problem: Problem) -> Images:
        card, generator = load_generator(self.weights, self.sha256)
        with problem.stage("block mask"):
            blocks = _blocks(problem, card)
        with problem.stage("generator"):
            generator.to(problem.images.device)
            adv = perturb(generator, problem.images, blocks, self.k, problem.allowed)
            problem.note_generator_pass()
            if self.fallback is None:
                return adv
            fooled = problem.goal.met(problem.logits(adv))
        problem.credit(fooled, "generator")
        left = (~fooled).nonzero().squeeze(1)
        with problem.stage("fallback"):
            if len(left):
                adv = adv.index_copy(0, left, self.fallback(problem[left]))
        return adv


def _blocks(problem: Problem, card: GeneratorCard) -> BlockMask:
    """Where each image may change; nowhere in images that were refused a pass."""
    images = problem.images
    if card.keep >= 1:
        return torch.ones_like(images[:, :1], dtype=torch.bool)
    features, gradient, refused = problem.features_and_gradient(card.layer)
    size = (card.height, card.width)
    mask = block_mask(features, gradient, size, card.block, card.keep)
    return mask & ~refused.view(-1, 1, 1, 1)


@torch.no_grad()
def perturb(
    generator: Generator,
    images: Images,
    blocks: BlockMask,
    k: int | None = None,
    allowed: Allowed | None = None,
) -> Images:
    """The images with the generator's perturbation, in at most ``k`` pixels of the ``blocks``.

    A CPU computes in double precision. With the rounding to 8-bit levels, an image has the same
    result bit for bit in any batch.
    """
    dtype = torch.float64 if images.is_cpu else torch.float32
    values, mask = generator.to(dtype)(images.to(dtype))
    values = (values * _GREY_LEVELS).round() / _GREY_LEVELS
    chosen = (mask >= 0.5) & blocks
    adv = torch.where(chosen, (images + values).clamp(0, 1).to(images.dtype), images)
    adv = keep_allowed(adv, images, allowed)
    if k is not None:
        pixels = Units("pixels")
        change = pixels.total((adv - images).abs())
        count = torch.full_like(change[:, 0], k, dtype=torch.long)
        adv = torch.where(pixels.spread(mask_largest(change, count, k), images), adv, images)
    return adv
