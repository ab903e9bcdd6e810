"""Randomised ablation: a network that sees few pixels at a time, and votes over many draws.

Levine, Feizi: Robustness certificates for sparse adversarial attacks by randomized ablation.
AAAI 2020.

    u_i   ~ subsets of ``kept`` pixels, i = 1 ... draws
    seen  = (x, 1 - x) at the pixels of u_i, (0, 0) at all others, per channel
    votes = how many draws have argmax base(seen) = c, per class c

Each channel becomes a pair of channels, as in the paper. So an absent pixel differs from every
colour, black included. A changed pixel can change only votes of draws that see it.

Differs from the paper:

- The draws are the same for every image and every query. They follow from a seed, so the model is a
  fixed function: an attack gets the same answer to the same image, and its result can be verified.
  Draws that follow from the image would change with every pixel and only hide the gradient.
- The draws are balanced: any two pixels are seen by equally many draws, give or take one. With
  independent draws an attacker would choose the pixels that happen to be seen most often. Each draw
  on its own is still uniform, so shares of votes estimate those of the paper without bias.
- Scores are logarithms of the shares of votes, ties broken by the mean softmax of the draws. Votes
  are whole numbers and have no gradient; the gradient of the scores is that of the logarithm of the
  mean softmax.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pinprick.errors import BadInput
from pinprick.random import Streams
from pinprick.types import Images, Logits, PerImage
from pinprick.zoo.card import Ablation

_ROOM = 1 << 24  # elements that go through the base network at once
_TIE = 0.5  # votes that the mean softmax counts for; below 1, so that it decides ties alone
_LEAST = 1e-12  # share of votes of a class that has none


class VotingNetwork(nn.Module):
    """The votes of a base network over draws of few pixels.

    Images of twice as many channels have been encoded by ``encode`` already. They go through the
    base network alone, which is how it is trained.

    Attributes:
        base: The network of the draws; takes twice as many channels as the images have.
        ablation: How many pixels a draw keeps, how many draws there are, and their seed.
        masks: Which pixels each draw sees, (draws, 1, height, width).
    """

    masks: Tensor

    def __init__(self, base: nn.Module, shape: tuple[int, int, int], ablation: Ablation) -> None:
        super().__init__()
        self.base, self.ablation = base, ablation
        self._channels, height, width = shape
        subsets = balanced_subsets(
            height * width, ablation.kept, ablation.draws, seed=ablation.seed
        )
        seen = torch.zeros(ablation.draws, height * width, dtype=torch.bool)
        masks = seen.scatter_(1, subsets, True).view(-1, 1, height, width)
        self.register_buffer("masks", masks, persistent=False)

    def forward(self, images: Images) -> Logits:
        height, width = self.masks.shape[2:]
        channels = images.shape[1]
        if images.shape[2:] != (height, width) or channels not in self._channel_counts:
            raise BadInput(
                f"this network votes on images of {self._channels} x {height} x {width}, "
                f"got {' x '.join(map(str, images.shape[1:]))}"
            )
        if channels != self._channels:
            logits: Tensor = self.base(images)
            return logits
        counts, means = [], []
        for drawn in self._chunks(images):
            counts.append(F.one_hot(drawn.argmax(dim=2), drawn.shape[2]).sum(dim=1))
            means.append(drawn.log_softmax(dim=2).logsumexp(dim=1))
        log_mean = torch.stack(means).logsumexp(dim=0) - math.log(len(self.masks))
        votes = torch.stack(counts).sum(dim=0)
        shares = (votes + _TIE * log_mean.detach().exp()) / (len(self.masks) + _TIE)
        return shares.clamp_min(_LEAST).log() + (log_mean - log_mean.detach())

    def draw_logits(self, images: Images) -> Tensor:
        """The base network's logits for each draw, (batch, draws, classes)."""
        return torch.cat(list(self._chunks(images)), dim=1)

    @property
    def _channel_counts(self) -> tuple[int, int]:
        return self._channels, 2 * self._channels

    def _chunks(self, images: Images) -> Iterator[Tensor]:
        """The logits of some draws at a time, as many as there is room for.

        With a gradient, activations of several chunks would not fit either, so the backward pass
        computes them again.
        """
        at_once = max(1, _ROOM // max(1, 2 * images.numel()))
        parts = self.masks.split(at_once)
        for masks in parts:
            if len(parts) > 1 and torch.is_grad_enabled() and images.requires_grad:
                yield checkpoint(
                    self._seen_logits, images, masks, use_reentrant=False, preserve_rng_state=False
                )
            else:
                yield self._seen_logits(images, masks)

    def _seen_logits(self, images: Images, masks: Tensor) -> Tensor:
        seen = encode(images.unsqueeze(1), masks)
        logits: Tensor = self.base(seen.flatten(0, 1))
        shape = (len(images), len(masks), logits.shape[1])
        return logits.view(shape)


def one_vote(net: nn.Module, logits: Logits) -> PerImage | None:
    """How far the two highest scores of each image move against each other with one vote.

    Rounding may turn a draw that is nearly undecided. None for a network without votes.
    """
    draws = [len(one.masks) for one in net.modules() if isinstance(one, VotingNetwork)]
    if not draws:
        return None
    votes = (logits.double().exp() * (max(draws) + _TIE)).topk(2, dim=1).values
    first, second = votes[:, 0].clamp_min(2), votes[:, 1]
    return (first / (first - 1)).log() + ((second + 1) / second).log()


def encode(images: Tensor, seen: Tensor) -> Tensor:
    """``(x, 1 - x)`` for each channel of the pixels that are seen, zero for all others.

    Args:
        images: Images in [0, 1], (..., channel, height, width).
        seen: Which pixels are seen, (..., 1, height, width).
    """
    return torch.cat((images, 1 - images), dim=-3) * seen


def balanced_subsets(pixels: int, kept: int, draws: int, *, seed: int) -> Tensor:
    """Subsets of ``kept`` different pixels, (draws, kept); all pixels are in equally many, +- 1.

    Random permutations of all pixels are cut into subsets one after another. A subset that ends one
    permutation and begins the next takes the first pixels there that it does not have yet. No pixel
    is special, so each subset on its own is uniform.
    """
    if not 1 <= kept <= pixels:
        raise BadInput(f"a draw keeps 1 to {pixels} pixels, got kept {kept}")
    streams = Streams(seed, torch.zeros(1, dtype=torch.int64))
    left, subsets = torch.zeros(0, dtype=torch.int64), []
    rounds = 0
    for _ in range(draws):
        begun = left[:kept]
        left = left[kept:]
        if len(begun) < kept:
            keys = streams.uniform(pixels, step=rounds, use="ablation subsets")[0]
            order = keys.argsort(stable=True)
            rounds += 1
            new = order[~torch.isin(order, begun)][: kept - len(begun)]
            left = order[~torch.isin(order, new)]
            begun = torch.cat((begun, new))
        subsets.append(begun)
    return torch.stack(subsets)


def with_channel_pairs(net: nn.Module, name: str) -> nn.Module:
    """The network, with fresh weights in its first convolution for twice as many channels."""
    for place, module in net.named_modules():
        if isinstance(module, nn.Conv2d):
            if module.groups > 1:
                break
            wide = nn.Conv2d(
                2 * module.in_channels,
                module.out_channels,
                module.kernel_size,  # type: ignore[arg-type]
                stride=module.stride,  # type: ignore[arg-type]
                padding=module.padding,  # type: ignore[arg-type]
                dilation=module.dilation,  # type: ignore[arg-type]
                bias=module.bias is not None,
                padding_mode=module.padding_mode,
            )
            parent, _, child = place.rpartition(".")
            setattr(net.get_submodule(parent), child, wide)
            return net
    raise BadInput(
        f"{name} does not begin with a plain convolution, so it cannot take pairs of channels; "
        "randomised ablation needs a convolutional network"
    )
