"""Small networks with ReLUs of every make, all with the same weights, and images for them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick import Classifier

SIZE = (12, 12)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pictures(count: int = 5, seed: int = 1) -> Tensor:
    return drawn(count, 3, *SIZE, seed=seed)


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build().double()


class Pooled(nn.Module):
    """Convolutions, the mean over the picture, one linear layer: CAM has a closed form here."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 5, 3, stride=2, padding=1)
        )
        self.head = nn.Linear(5, 4)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(images).mean(dim=(2, 3)))
        return logits


class Bent(nn.Module):
    """Two convolutions with a residual sum and a pooling, and a choice of what bends them."""

    def __init__(self, bend: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.hidden = nn.Linear(6 * 36, 8)
        self.head = nn.Linear(8, 4)
        self.bend = bend

    def forward(self, images: Tensor) -> Tensor:
        out = self.bend(self.first(images))
        out = self.bend(self.second(out) + out.clone())
        out = F.max_pool2d(out, 2).flatten(1)
        logits: Tensor = self.head(self.bend(self.hidden(out)))
        return logits


class OwnModules(Bent):
    """The same with a ReLU module of its own in each place, as captum needs it."""

    def __init__(self) -> None:
        super().__init__(nn.Identity())
        self.one, self.two, self.three = nn.ReLU(), nn.ReLU(), nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        out = self.one(self.first(images))
        out = self.two(self.second(out) + out)
        out = F.max_pool2d(out, 2).flatten(1)
        logits: Tensor = self.head(self.three(self.hidden(out)))
        return logits


def in_place_unreturned(x: Tensor) -> Tensor:
    F.relu(x, inplace=True)
    return x


def in_place_on_a_view(x: Tensor) -> Tensor:
    x.flatten(1)[:, :].relu_()
    return x


RELUS: dict[str, Callable[[Tensor], Tensor]] = {
    "module": nn.ReLU(),
    "module in place": nn.ReLU(inplace=True),
    "function": F.relu,
    "function in place": lambda x: F.relu(x, inplace=True),
    "result unused": in_place_unreturned,
    "on a view": in_place_on_a_view,
    "torch": torch.relu,
    "torch in place": torch.relu_,
    "method": lambda x: x.relu(),
    "method in place": lambda x: x.relu_(),
    "operator": torch.ops.aten.relu.default,
    "by keyword": lambda x: F.relu(input=x, inplace=False),
    "uncapped hardtanh": lambda x: F.hardtanh(x, 0.0, float("inf")),
}


def bent(bend: Callable[[Tensor], Tensor], seed: int = 0) -> Classifier:
    return Classifier(seeded(lambda: Bent(bend), seed), name="bent")


def own_modules(seed: int = 0) -> Classifier:
    return Classifier(seeded(OwnModules, seed), name="own modules")


def pooled(seed: int = 0) -> Classifier:
    return Classifier(seeded(Pooled, seed), name="pooled")
