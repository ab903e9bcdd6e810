"""The network that writes a perturbation and a mask for an image in one pass.

    h    = encoder(x)                  7x7, then two 3x3 of stride 2, then residual blocks
    r    = eps * tanh(values(h))       one perturbation per element, in [-eps, eps]
    rho  = (tanh(mask(h)) + 1) / 2     one mask value per pixel, in [0, 1]

The image is in [0, 1] and not normalised. A side that is no multiple of 4 is rounded up inside.
Then the last rows and columns of both outputs are cut off, and output (i, j) belongs to pixel
(i, j).
"""

from jaxtyping import Float
from torch import Tensor, nn

from pinprick.types import Images

PixelMask = Float[Tensor, "batch 1 height width"]

LEAST_SIDE = 5  # the reflections at the border need as many pixels


class Generator(nn.Module):
    """Encoder, and one decoder each for the perturbation and for the mask.

    Args:
        channels: 3 for colour, 1 for grey.
        width: Channels after the first convolution; later ones have two and four times as many.
        residual_blocks: Number of residual blocks between encoder and decoders.
        eps: Most that an element may change.
    """

    def __init__(self, channels: int, width: int, residual_blocks: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.encoder = nn.Sequential(
            nn.ReflectionPad2d(3),
            nn.Conv2d(channels, width, 7, bias=False),
            *_norm(width),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            *_norm(2 * width),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1, bias=False),
            *_norm(4 * width),
            *(ResidualBlock(4 * width) for _ in range(residual_blocks)),
        )
        self.values = _decoder(width, channels)
        self.mask = _decoder(width, 1)

    def forward(self, images: Images) -> tuple[Images, PixelMask]:
        """The perturbation ``r`` and the mask ``rho`` before it is made binary."""
        height, width = images.shape[2:]
        hidden = self.encoder(images)
        values = self.values(hidden)[..., :height, :width].tanh()
        mask = self.mask(hidden)[..., :height, :width].tanh()
        return self.eps * values, (mask + 1) / 2


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(width, width, 3, bias=False),
            *_norm(width),
            nn.Dropout(0.5),
            nn.ReflectionPad2d(1),
            nn.Conv2d(width, width, 3, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.inner(x)
        return out


def _norm(width: int) -> tuple[nn.Module, nn.Module]:
    return nn.BatchNorm2d(width), nn.ReLU()


def _decoder(width: int, channels: int) -> nn.Sequential:
    return nn.Sequential(
        _upwards(4 * width, 2 * width),
        *_norm(2 * width),
        _upwards(2 * width, width),
        *_norm(width),
        nn.ReflectionPad2d(3),
        nn.Conv2d(width, channels, 7),
    )


def _upwards(inside: int, outside: int) -> nn.ConvTranspose2d:
    """A convolution to twice the size."""
    return nn.ConvTranspose2d(inside, outside, 3, stride=2, padding=1, output_padding=1, bias=False)
