"""The schedule of a training: epochs, learning rate, loss and augmentation."""

from dataclasses import dataclass
from typing import Literal

from pinprick.errors import BadInput
from pinprick.settings import Settings, setting

Points = tuple[tuple[float, float], ...]

ONE_CYCLE: Points = ((0.0, 0.0), (0.25, 1.0), (1.0, 0.0))


@dataclass(frozen=True, kw_only=True)
class Schedule(Settings):
    """The settings of the training loop, which are the same for every recipe.

    Attributes:
        epochs: Number of passes over the training images.
        batch_size: Images per step; an incomplete batch at the end of an epoch is left out.
        optimiser: "sgd" (with Nesterov's momentum) or "adam".
        lr: The largest learning rate.
        lr_shape: Pairs of a share of the training and the share of ``lr`` there; linear between.
        momentum: Momentum of sgd.
        weight_decay: On weights of convolutions and linear layers; biases and norms have none.
        label_smoothing: Share of the label that is spread over all classes.
        trades: Weight of the KL term of TRADES between clean and perturbed images. None for the
            cross-entropy on the perturbed images.
        ema: Decay per step of a running mean of the weights, which is the network that is saved.
            None to save the last weights.
        crop: Largest random shift in pixels; the border is mirrored.
        flip: Whether images are mirrored left to right, in half of the epochs.
        cutout: Side of a random square that is covered with grey.
        ramp: Share of the training over which the recipe's attack grows to its full size.
        phases: Rows of a share of the training, and image size and batch size from there on. For
            picture files; empty for images of one size.
        drop: Fall of robust accuracy on training images that counts as a collapse.
        watch_images: Images for accuracy and robust accuracy after each epoch.
        compile: Whether torch compiles the network for the step itself.
        graphs: Whether passes on a GPU run as CUDA graphs; not together with ``compile``.
    """

    epochs: int = setting(30, least=1)
    batch_size: int = setting(128, least=1)
    optimiser: Literal["sgd", "adam"] = "sgd"
    lr: float = setting(0.1, above=0, most=100)
    lr_shape: Points = ONE_CYCLE
    momentum: float = setting(0.9, least=0, below=1)
    weight_decay: float = setting(5e-4, least=0)
    label_smoothing: float = setting(0.0, least=0, below=1)
    trades: float | None = setting(None, above=0, most=100)
    ema: float | None = setting(None, least=0, below=1)
    crop: int = setting(0, least=0)
    flip: bool = False
    cutout: int = setting(0, least=0)
    ramp: float = setting(0.0, least=0, most=1)
    phases: tuple[tuple[float, float, float], ...] = ()
    drop: float = setting(0.2, least=0, most=1)
    watch_images: int = setting(1000, least=1)
    compile: bool = False
    graphs: bool = True

    @classmethod
    def owner(cls) -> str:
        return "training"

    def __post_init__(self) -> None:
        _check_points("lr_shape", self.lr_shape)
        if self.phases:
            _check_points("phases", self.phases)

    def lr_at(self, share: float) -> float:
        """The learning rate when ``share`` of the training is done."""
        return self.lr * _between(self.lr_shape, share)

    def strength_at(self, share: float) -> float:
        """Factor on the sizes of the recipe's attack when ``share`` of the training is done."""
        return min(1.0, share / self.ramp) if self.ramp else 1.0

    def phase_at(self, epoch: int) -> tuple[int | None, int]:
        """Image size, None for their own, and batch size in an epoch (from 0)."""
        size, batch_size = None, self.batch_size
        for start, *wanted in self.phases:
            if epoch >= round(start * self.epochs):
                size, batch_size = int(wanted[0]), int(wanted[1])
        return size, batch_size

    @property
    def last_size(self) -> int | None:
        """Image size in the last epoch; None for their own."""
        return self.phase_at(self.epochs - 1)[0]


def _check_points(name: str, points: tuple[tuple[float, ...], ...]) -> None:
    width = 2 if name == "lr_shape" else 3
    starts = [point[0] for point in points if len(point) == width]
    rest = [value for point in points for value in point[1:]]
    fits = len(starts) == len(points) > 0 and starts == sorted(starts)
    least = 0 if name == "lr_shape" else 1
    if not fits or starts[0] != 0 or starts[-1] > 1 or min(rest) < least:
        raise BadInput(
            f"training needs {name} as rows of {width} numbers, each starting with a share of the "
            f"training, from 0 up; got {points}"
        )


def _between(points: Points, share: float) -> float:
    """The value at ``share`` on the lines that join ``points``."""
    last = points[0]
    for point in points[1:]:
        if share < point[0]:
            return last[1] + (point[1] - last[1]) * (share - last[0]) / (point[0] - last[0])
        last = point
    return last[1]
