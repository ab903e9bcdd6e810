"""Small networks, and the fewest units by trying every subset and every pattern."""

from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog
from torch import Tensor, nn

from pinprick import AttackResult, Classifier, Goal, run_attack
from pinprick.attacks import Greedy
from pinprick.bounds.read_network import ReluNetwork, read_network
from pinprick.metrics.unit import Unit
from pinprick.model import as_classifier

Floats = NDArray[np.float64]
TINY = 1e-7  # a margin of a linear program that counts as above zero


def small_network(*widths: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """Fully connected, with ReLUs between random layers; no class wins everywhere."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.rand((300, widths[0]), generator=generator)
    layers: list[nn.Module] = [nn.Flatten()]
    for inside, outside in pairwise(widths):
        layer = nn.Linear(inside, outside)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(outside, inside, generator=generator))
            layer.bias.copy_(-(hidden @ layer.weight.T).mean(dim=0))
            hidden = layer(hidden).relu()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(dtype)


def small_cnn(seed: int = 0, channels: int = 1) -> Classifier:
    """Two convolutions and two linear layers for images of 6 x 5, with a mean and a std."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(
            nn.Conv2d(channels, 3, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(3, 4, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16, 6),
            nn.ReLU(),
            nn.Linear(6, 3),
        )
    for module in net:
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            module.weight.data *= 2
    return Classifier(net, mean=(0.4,) * channels, std=(0.5,) * channels, name="small")


def small_images(count: int, shape: tuple[int, int, int], seed: int = 1) -> Tensor:
    """Random images; a third of the values is at an end of the box, as in pictures of digits."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand((count, *shape), generator=generator)
    return ((images - 0.5) * 1.5 + 0.5).clamp(0, 1)


def sure_images(net: nn.Module, count: int, shape: tuple[int, int, int]) -> Tensor:
    """Of many random images those with the widest margins, so that fooling takes a few units."""
    images = small_images(300, shape)
    with torch.no_grad():
        best = net(images).topk(2, dim=1).values
    return images[(best[:, 0] - best[:, 1]).topk(count).indices]


def wasteful(net: nn.Module, images: Tensor) -> AttackResult:
    """A result whose adversarial images are other images, of another class."""
    others = small_images(300, (images.shape[1], *images.shape[2:]), seed=7)
    with torch.no_grad():
        labels, classes = net(images).argmax(dim=1), net(others).argmax(dim=1)
    adv = torch.stack([others[classes != label][0] for label in labels])
    with torch.no_grad():
        return replace(failed(net, images, labels), adversarial=adv, adversarial_logits=net(adv))


def failed(net: nn.Module, images: Tensor, labels: Tensor) -> AttackResult:
    """The result of an attack that found nothing."""
    return run_attack(Greedy(), net, images, labels, max_forwards=0)


def attack_small(
    net: nn.Module, images: Tensor, *, targets: Tensor | None = None, allowed: Tensor | None = None
) -> AttackResult:
    """A result that is often far from the optimum; labels are the network's own answers."""
    with torch.no_grad():
        labels = net(images).argmax(dim=1)
    return run_attack(Greedy(), net, images, labels, targets=targets, allowed=allowed)


def other_classes(net: nn.Module, images: Tensor) -> Tensor:
    """The class after that of the network, per image."""
    with torch.no_grad():
        logits = net(images)
    other: Tensor = (logits.argmax(dim=1) + 1) % logits.shape[1]
    return other


def fewest_by_trying(
    model: nn.Module | Classifier,
    image: Tensor,
    goal: Goal,
    unit: Unit,
    allowed: Tensor | None = None,
) -> float:
    """Fewest units over all subsets, in order of their size; infinite where none is enough."""
    network = read_network(as_classifier(model), image[None])
    channels = image.shape[0] if unit == "pixels" else 1
    start = image.double().flatten().numpy()
    may = np.ones(len(start), bool) if allowed is None else allowed.flatten().numpy()
    units = len(start) // channels
    for size in range(units + 1):
        for chosen in combinations(range(units), size):
            free = np.tile(np.isin(np.arange(units), chosen), channels) & may
            low, high = np.where(free, 0.0, start), np.where(free, 1.0, start)
            if any(_reaches(network, low, high, rows) for rows in _leads(network, goal)):
                return float(size)
    return float("inf")


def _leads(network: ReluNetwork, goal: Goal) -> list[tuple[Floats, Floats]]:
    """Per way to meet the goal, the functions of the last layer that must be above zero."""
    last = network.maps[-1]
    eye = np.eye(len(last.bias))
    if goal.targets is None:
        label = int(goal.labels)
        ways = [eye[[rival]] - eye[label] for rival in range(len(eye)) if rival != label]
    else:
        target = int(goal.targets)
        ways = [eye[target] - np.delete(eye, target, axis=0)]
    return [(way @ last.weight, way @ last.bias) for way in ways]


def _reaches(network: ReluNetwork, low: Floats, high: Floats, rows: tuple[Floats, Floats]) -> bool:
    """Whether all functions exceed zero somewhere in the box, over every pattern of ReLUs."""
    middle, radius = (low + high) / 2, (high - low) / 2
    choices = []
    for each in network.maps[:-1]:
        centre = each.weight @ middle + each.bias
        spread = np.abs(each.weight) @ radius
        choices += [
            [s for s in (0, 1) if (s and top > 0) or (not s and bottom <= 0)]
            for bottom, top in zip(centre - spread, centre + spread, strict=True)
        ]
        middle = (np.maximum(centre - spread, 0) + np.maximum(centre + spread, 0)) / 2
        radius = np.maximum(centre + spread, 0) - middle
    if (rows[0] @ middle + np.abs(rows[0]) @ radius + rows[1] < 0).any():
        return False
    return any(_widest(network, low, high, rows, pattern) > TINY for pattern in product(*choices))


def _widest(
    network: ReluNetwork,
    low: Floats,
    high: Floats,
    rows: tuple[Floats, Floats],
    pattern: tuple[int, ...],
) -> float:
    """The largest minimum of the functions among images with this pattern of ReLUs."""
    weight, bias = np.eye(len(low)), np.zeros(len(low))
    left, right, place = [], [], 0
    for each in network.maps[:-1]:
        weight, bias = each.weight @ weight, each.weight @ bias + each.bias
        on = np.array(pattern[place : place + len(bias)])
        place += len(bias)
        sign = 1 - 2 * on[:, None]  # on: -value <= 0
        left.append(np.hstack((sign * weight, np.zeros((len(bias), 1)))))
        right.append(-sign[:, 0] * bias)
        weight, bias = on[:, None] * weight, on * bias
    weight, bias = rows[0] @ weight, rows[0] @ bias + rows[1]
    left.append(np.hstack((-weight, np.ones((len(bias), 1)))))
    right.append(bias)
    found = linprog(
        [*np.zeros(len(low)), -1.0],
        A_ub=np.vstack(left),
        b_ub=np.concatenate(right),
        bounds=[*zip(low, high, strict=True), (None, None)],
    )
    return -np.inf if found.status == 2 else -float(found.fun)
