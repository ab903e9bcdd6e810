"""The training loop of a generator for EGS-TSSA.

    B    = block_mask(x)                     from the feature map of the attacked model
    q    = 1[rho >= 0.5] * B                 binary mask, gradient blocked
    m    = q with probability 0.5 per pixel, else rho
    x'   = clip(x + r * m, 0, 1)
    loss = sum max(margin(f(x')), -confidence) + a * sum m + b * sum (q - rho)^2

The margin is that of the model's own prediction on the clean image, or of the target. The first
stage has ``a = 0``; in the second one ``a`` rises while the binary mask has more than the wanted
share of the pixels, and falls while it has fewer. Exact group sparsity is the ``B`` in ``q``, in
both stages: outside the kept blocks the last term pulls ``rho`` to zero.

Of the epochs of the second stage whose mask has at most the wanted share of the pixels, the one
with the highest fooling rate on some training images is kept; the last one where there is none.

No step waits for the device: sums are read once per epoch.
"""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pinprick.attacks.egs_tssa.block_mask import BlockMask, block_mask
from pinprick.attacks.egs_tssa.generator import LEAST_SIDE, PixelMask
from pinprick.attacks.egs_tssa.saved_generator import GeneratorCard
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.feature_layer import find_feature_layer, layer_outputs
from pinprick.goal import Goal
from pinprick.model import Classifier
from pinprick.train.exam import evenly_spaced
from pinprick.train.feed import Augment, Batch, Feed, MemoryFeed
from pinprick.train.generator_plan import REFERENCE_PIXELS, GeneratorPlan
from pinprick.train.loop import Tick, seed_for
from pinprick.train.material import Material
from pinprick.train.optimise import half_precision, load_optimiser, optimiser_tensors, tuned
from pinprick.train.picture_feed import PictureFeed
from pinprick.types import Images, Labels, Logits

_BETAS = (0.5, 0.999)
_RATE = 0.02  # how fast the weight of the sparsity loss follows the share of the mask
_LAST = 0.2  # share of the steps over which the learning rate falls to zero
_BATCH = 250


@dataclass(frozen=True)
class GeneratorEpoch:
    """The results of one epoch.

    Attributes:
        number: The epoch, from 1.
        stage: 1 without the sparsity loss, 2 with it.
        loss: Mean loss per image.
        train_pixels: Share of the pixels that the binary mask has on training images.
        fooling_rate: Share of the watched images whose prediction changes, or becomes the target.
        pixels: Share of the pixels that the binary mask has there.
        not_binary: Mean distance of the mask from the binary one.
        sparsity: Weight of the sparsity loss at its end.
        seconds: Time of the training so far, without the final measurements.
    """

    number: int
    stage: int
    loss: float
    train_pixels: float
    fooling_rate: float
    pixels: float
    not_binary: float
    sparsity: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"epoch {self.number}, stage {self.stage}: loss {self.loss:.3f}, "
            f"fooling rate {self.fooling_rate:.1%} with {self.pixels:.1%} of the pixels, "
            f"{self.seconds:.0f} s"
        )


@dataclass
class GeneratorProgress:
    """How far a training has come.

    Attributes:
        epochs: Epochs done.
        kept: The epoch that is kept; 0 for the last one.
        seconds: Time spent.
        history: Every epoch.
    """

    epochs: int = 0
    kept: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def quantise(
    rho: PixelMask, blocks: BlockMask, draw: Float[Tensor, "batch 1 height width"], share: float
) -> tuple[PixelMask, PixelMask]:
    """The mask of a training step, and the binary mask.

    Where ``draw`` is below ``share`` the mask is binary and has no gradient. Elsewhere it is
    ``rho``, which the blocks do not cut.
    """
    binary = ((rho >= 0.5) & blocks).to(rho.dtype)
    return torch.where(draw < share, binary, rho), binary


class GeneratorTrainer:
    """A generator in training against a model that stays the same.

    Attributes:
        card: Its card, without facts.
        generator: The network in training.
        progress: The epochs so far.
    """

    def __init__(
        self,
        plan: GeneratorPlan,
        model: Classifier,
        material: Material,
        device: torch.device | str,
        *,
        target: int | None = None,
        seed: int = 0,
    ) -> None:
        self.plan, self.model, self.target, self.seed = plan, model, target, seed
        self.device = torch.device(device)
        assert isinstance(model.net, nn.Module)
        model.net.to(self.device)
        first = evenly_spaced(material.test, 1).images(model)
        self.card = _card(plan, model, first, target)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed_for(seed, "generator"))
            self.generator = self.card.build()
        self.generator.to(self.device)
        if self.device.type == "cuda":
            model.net.to(memory_format=torch.channels_last)
            self.generator.to(memory_format=torch.channels_last)
        fused = self.device.type == "cuda"
        self.optimiser = torch.optim.Adam(
            self.generator.parameters(), plan.lr, betas=_BETAS, fused=fused
        )
        self._scale = REFERENCE_PIXELS / (self.card.height * self.card.width)
        self.sparsity = torch.tensor(plan.sparsity, device=self.device)
        self.feed = _make_feed(plan, material.train, self.device, seed)
        self._watched = self._watch(evenly_spaced(material.train, plan.watch_images))
        self._kept = deepcopy(self.generator.state_dict())
        self.progress = GeneratorProgress()

    def epochs(self, tick: Tick | None = None) -> Iterator[GeneratorEpoch]:
        """Train the epochs that are left."""
        while self.progress.epochs < self.plan.epochs:
            with self.model.frozen(), tuned(self.device):
                epoch = self._epoch(tick)
            if not epoch.loss < float("inf"):
                raise BadInput(
                    f"the loss is no longer a number in epoch {epoch.number}; "
                    f"try a lower learning rate than {self.plan.lr:g}, with lr=..."
                )
            self.accept(epoch)
            yield epoch

    def accept(self, epoch: GeneratorEpoch) -> None:
        """Note an epoch, and keep its weights if they are the best so far."""
        self.progress.epochs += 1
        self.progress.seconds = epoch.seconds
        if self._is_best(epoch):
            self.progress.kept = epoch.number
            self._kept = deepcopy(self.generator.state_dict())
        self.progress.history.append(asdict(epoch))

    def _is_best(self, epoch: GeneratorEpoch) -> bool:
        """Whether no epoch so far has the wanted share and a higher fooling rate."""
        history = self.progress.history
        best = history[self.progress.kept - 1]["fooling_rate"] if self.progress.kept else -1.0
        fits = epoch.stage == 2 and epoch.pixels <= self.plan.pixels
        return fits and epoch.fooling_rate >= best

    def take_best(self) -> None:
        """Return to the weights of the epoch that is kept."""
        if self.progress.kept:
            self.generator.load_state_dict(self._kept)

    def tensors(self) -> dict[str, Tensor]:
        """A copy of everything that the next epoch depends on."""
        found = {f"net/{name}": value for name, value in self.generator.state_dict().items()}
        found |= {f"kept/{name}": value for name, value in self._kept.items()}
        found |= optimiser_tensors(self.optimiser) | {"sparsity": self.sparsity}
        return {name: tensor.detach().clone() for name, tensor in found.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Return to the state that ``tensors`` gave."""
        with torch.no_grad():
            for name, value in self.generator.state_dict().items():
                value.copy_(tensors[f"net/{name}"])
                self._kept[name].copy_(tensors[f"kept/{name}"])
            self.sparsity.copy_(tensors["sparsity"])
        load_optimiser(self.optimiser, tensors)

    def _epoch(self, tick: Tick | None) -> GeneratorEpoch:
        plan, number = self.plan, self.progress.epochs
        stage = 1 if number < plan.dense_epochs else 2
        batch_size = min(plan.batch_size, len(self.feed))
        steps = len(self.feed) // batch_size
        seed = seed_for(self.seed, f"epoch {number}")
        start = time.perf_counter()
        loss, share = (torch.zeros((), device=self.device) for _ in range(2))
        devices = [self.device] if self.device.type == "cuda" else []
        self.generator.train()
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)  # of dropout
            size = self.card.height
            for step, batch in enumerate(self.feed.batches(number, seed, batch_size, size)):
                left = (1 - (number + step / steps) / plan.epochs) / _LAST
                for group in self.optimiser.param_groups:
                    group["lr"] = plan.lr * min(1.0, left)
                one_loss, one_share = self._step(batch, stage)
                loss += one_loss
                share += one_share
                if tick is not None:
                    tick(step + 1, steps)
        measured = self._measure()
        return GeneratorEpoch(
            number=number + 1,
            stage=stage,
            loss=loss.item() / (steps * batch_size),
            train_pixels=round(share.item() / steps, 5),
            **measured,
            sparsity=self.sparsity.item() if stage == 2 else 0.0,
            seconds=self.progress.seconds + time.perf_counter() - start,
        )

    def _step(self, batch: Batch, stage: int) -> tuple[Tensor, Tensor]:
        """One step of the optimiser; gives loss and share of the binary mask, on the device."""
        plan, images = self.plan, batch.images
        logits, blocks = self._ask(images)
        goal = self._goal(logits)
        draw = batch.rng.uniform(1, *images.shape[2:], step=0, use="quantise")
        with half_precision(self.device):
            values, rho = (one.float() for one in self.generator(images))
            mask, binary = quantise(rho, blocks, draw, plan.quantised)
            fooled = self.model((images + values * mask).clamp(0, 1)).float()
        loss: Tensor = goal.margin(fooled).clamp(min=-plan.confidence).sum()
        weight = plan.dense_binary if stage == 1 else plan.sparse_binary
        loss = loss + self._scale * weight * (binary - rho).square().sum()
        if stage == 2:
            loss = loss + self._scale * self.sparsity * mask.sum()
            over = (binary.mean() / plan.pixels - 1).clamp(-1, 1)
            self.sparsity.mul_((_RATE * over).exp()).clamp_(1e-8, 1e2)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return loss.detach(), binary.mean()

    def _ask(self, images: Images) -> tuple[Logits, BlockMask]:
        """The model's logits of clean images, and the blocks that may change."""
        plan, card = self.plan, self.card
        if plan.keep >= 1:
            with torch.no_grad(), half_precision(self.device):
                logits = self.model(images).float()
            return logits, torch.ones_like(images[:, :1], dtype=torch.bool)
        with layer_outputs(self.model, card.layer, cut=True) as found, half_precision(self.device):
            logits = self.model(images).float()
        gradient = torch.autograd.grad(logits.sum(), found[-1])[0]
        size = (card.height, card.width)
        blocks = block_mask(found[-1].detach(), gradient, size, plan.block, plan.keep)
        return logits.detach(), blocks

    def _goal(self, logits: Logits) -> Goal:
        """Leave the model's own prediction, or reach the target."""
        predicted = logits.argmax(dim=1)
        targets = None if self.target is None else torch.full_like(predicted, self.target)
        return Goal(predicted, targets)

    def _watch(self, data: Dataset) -> list[tuple[Images, Labels, BlockMask]]:
        """Images in batches, with the model's predictions and blocks."""
        watched = []
        with self.model.frozen(), tuned(self.device):
            for images in data.images(self.model).split(_BATCH):
                images = images.to(self.device)
                logits, blocks = self._ask(images)
                watched.append((images, logits.argmax(dim=1), blocks))
        return watched

    @torch.no_grad()
    def _measure(self) -> dict[str, float]:
        """Fooling rate and share of the mask on the watched images."""
        fooled = todo = share = distance = torch.zeros((), device=self.device)
        self.generator.eval()
        for images, predicted, blocks in self._watched:
            with half_precision(self.device):
                values, rho = (one.float() for one in self.generator(images))
                binary = ((rho >= 0.5) & blocks).float()
                now = self.model((images + values * binary).clamp(0, 1)).argmax(dim=1)
            if self.target is None:
                open_still, done = torch.ones_like(predicted, dtype=torch.bool), now != predicted
            else:
                open_still, done = predicted != self.target, now == self.target
            todo = todo + open_still.sum()
            fooled = fooled + (open_still & done).sum()
            share = share + binary.mean(dim=(1, 2, 3)).sum()
            distance = distance + (rho - (rho >= 0.5).float()).abs().mean(dim=(1, 2, 3)).sum()
        count = sum(len(predicted) for _, predicted, _ in self._watched)
        return {
            "fooling_rate": round(fooled.item() / max(1.0, todo.item()), 4),
            "pixels": round(share.item() / count, 5),
            "not_binary": round(distance.item() / count, 5),
        }


def _card(
    plan: GeneratorPlan, model: Classifier, images: Images, target: int | None
) -> GeneratorCard:
    """The card of a generator for images like these."""
    channels, height, width = images.shape[1:]
    if min(height, width) < LEAST_SIDE:
        raise BadInput(f"a generator needs images of at least {LEAST_SIDE} pixels per side")
    layer = ""
    if plan.keep < 1:
        assert isinstance(model.net, nn.Module)
        layer = find_feature_layer(model, model.net, images)
    return GeneratorCard(
        model=model.name,
        network=model.digest,
        layer=layer,
        channels=channels,
        height=height,
        width=width,
        target=target,
        eps=plan.eps,
        base=plan.base,
        residual_blocks=plan.residual_blocks,
        block=plan.block,
        keep=plan.keep,
    )


def _make_feed(plan: GeneratorPlan, data: Dataset, device: torch.device, seed: int) -> Feed:
    if data.pixels is None:
        return PictureFeed(data, device, flip=plan.flip)
    return MemoryFeed(data, Augment(plan.crop, plan.flip), device, seed=seed)
