"""Sparse attacks by their authors' own code, as attacks of this package (see ``peer.py``).

Settings have our names, so that a plan gives both sides the same budget. What is not a setting has
the value of the authors' scripts for CIFAR-10.
"""

import io
import math
import sys
import textwrap
from argparse import Namespace
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from benchmarks.parity.peer import (
    Network,
    Peer,
    aim,
    load_peer,
    nearest_rows,
    one_by_one,
    peer_folder,
    seed_of,
    side_by_side,
)
from torch import Tensor

from pinprick import Card, Problem, setting
from pinprick.goal import Goal
from pinprick.model import Access


def _card(
    name: str,
    title: str,
    access: Access,
    *,
    minimal: bool = False,
    targeted: bool = False,
    unit: Literal["elements", "pixels"] = "pixels",
) -> Card:
    return Card(
        name=name,
        title=f"{title}, authors' code",
        norm="l0",
        unit=unit,
        kind="minimal" if minimal else "budget",
        access=access,
        targeted=targeted,
        random=True,
        paper="",
    )


@dataclass(frozen=True, kw_only=True)
class SparseRS(Peer):
    """Sparse-RS: github.com/fra31/sparse-rs.

    Attributes:
        k: Number of pixels to change.
        queries: Most queries of the search; one before and one after it come on top.
        alpha: Share of the pixels that are swapped at first.
    """

    card: ClassVar[Card] = _card("authors_sparse_rs", "Sparse-RS", "scores", targeted=True)

    k: int = setting(50, least=1)
    queries: int = setting(1000, least=1)
    alpha: float = setting(0.3, above=0, most=1)

    def run(self, problem: Problem) -> Tensor:
        code, (classes, targeted) = load_peer("sparse-rs", "rs_attacks"), aim(problem)
        attack = code.RSAttack(
            Network(problem),
            eps=self.k,
            n_queries=self.queries,
            p_init=self.alpha,
            targeted=targeted,
            seed=seed_of(problem),
            verbose=False,
        )
        with torch.no_grad():
            return cast(Tensor, attack.perturb(problem.images.clone(), classes)[1])


def _sparse_pgd(problem: Problem, k: int, steps: int, *, projected: bool) -> Tensor:
    code = load_peer("sPGD/autoattack", "spgd", ("skimage", "skimage.util"))
    attack = code.SparsePGD(Network(problem), k=k, t=steps, unprojected_gradient=not projected)
    return cast(Tensor, attack(problem.images.clone(), problem.goal.labels.clone())[0])


@dataclass(frozen=True, kw_only=True)
class SparsePGD(Peer):
    """Sparse-PGD: github.com/CityU-MLO/sPGD.

    Attributes:
        k: Number of pixels to change.
        steps: Number of steps.
        projected: Whether the gradient of the magnitudes is that of the projected mask.
    """

    card: ClassVar[Card] = _card("authors_sparse_pgd", "Sparse-PGD", "gradients")

    k: int = setting(20, least=1)
    steps: int = setting(300, least=1)
    projected: bool = True

    def run(self, problem: Problem) -> Tensor:
        return _sparse_pgd(problem, self.k, self.steps, projected=self.projected)


@dataclass(frozen=True, kw_only=True)
class SparseAutoAttack(Peer):
    """sAA, of the same repository: Sparse-PGD twice, then Sparse-RS, each on what is left.

    Their class returns counts alone, so its three attacks are called here in its order.

    Attributes:
        k: Number of pixels to change.
        steps: Steps of each Sparse-PGD.
        queries: Queries of Sparse-RS.
    """

    card: ClassVar[Card] = _card("authors_saa", "sAA", "gradients")

    k: int = setting(20, least=1)
    steps: int = setting(300, least=1)
    queries: int = setting(3000, least=1)

    def run(self, problem: Problem) -> Tensor:
        adv = problem.images.clone()
        left = torch.arange(len(adv), device=adv.device)
        for number in range(3):
            part = problem[left]
            if number < 2:
                found = _sparse_pgd(part, self.k, self.steps, projected=number == 1)
            else:
                found = self._sparse_rs(part)
            adv[left] = found
            with torch.no_grad():
                left = left[~part.goal.plain.met(part.logits(found))]
            if not len(left):
                break
        return adv

    def _sparse_rs(self, problem: Problem) -> Tensor:
        attack = load_peer("sPGD/autoattack", "rs_attacks").RSAttack(
            Network(problem),
            eps=self.k,
            n_queries=self.queries,
            seed=seed_of(problem),
            verbose=False,
            loss="ce",
        )
        with torch.no_grad():
            return cast(Tensor, attack.perturb(problem.images.clone(), problem.goal.labels)[1])


def _in_numpy(attack: Any, problem: Problem) -> Tensor:
    """Their result for images as arrays with channels last."""
    images = problem.images.permute(0, 2, 3, 1).cpu().numpy()
    adv = attack.perturb(images, problem.goal.labels.cpu().numpy())[0]
    return torch.from_numpy(adv).permute(0, 3, 1, 2).to(problem.images)


@dataclass(frozen=True, kw_only=True)
class PGD0(Peer):
    """PGD-0: github.com/fra31/sparse-imperceivable-attacks.

    Attributes:
        k: Number of pixels to change.
        steps: Steps of each restart.
        restarts: Number of restarts.
    """

    card: ClassVar[Card] = _card("authors_pgd0", "PGD-0", "gradients")

    k: int = setting(5, least=1)
    steps: int = setting(100, least=1)
    restarts: int = setting(5, least=1)

    def run(self, problem: Problem) -> Tensor:
        code = load_peer("sparse-imperceivable-attacks", "pgd_attacks_pt", ("torchvision",))
        settings = {
            "type_attack": "L0",
            "n_restarts": self.restarts,
            "num_steps": self.steps,
            "step_size": 120000 / 255,
            "kappa": -1,
            "epsilon": -1,
            "sparsity": self.k,
        }
        return _in_numpy(code.PGDattack(Network(problem), settings), problem)


@dataclass(frozen=True, kw_only=True)
class CornerSearch(Peer):
    """CornerSearch, of the same repository; for ten classes.

    Attributes:
        max_pixels: Most pixels to change.
        best: One-pixel changes that sets are drawn from.
        tries: Sets of each size and class.
    """

    card: ClassVar[Card] = _card("authors_corner_search", "CornerSearch", "scores", minimal=True)

    max_pixels: int = setting(50, least=1)
    best: int = setting(100, least=1)
    tries: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        code = load_peer(
            "sparse-imperceivable-attacks", "cornersearch_attacks_pt", ("scipy.io", "torchvision")
        )
        settings = {
            "type_attack": "L0",
            "n_iter": self.tries,
            "n_max": self.best,
            "kappa": -1,
            "epsilon": -1,
            "sparsity": self.max_pixels,
            "size_incr": 1,
        }
        return one_by_one(
            problem,
            lambda network, part: _in_numpy(code.CSattack(network, settings), part),
        )


@dataclass(frozen=True, kw_only=True)
class GreedyFool(Peer):
    """GreedyFool: github.com/LightDXY/GreedyFool, without its distortion map.

    Their attack is the body of a script for Inception-v3 at 299 pixels. The lines that attack are
    run as they are, with other images and another network around them.

    Attributes:
        steps: Most steps of the first stage.
    """

    card: ClassVar[Card] = _card("authors_greedyfool", "GreedyFool", "gradients", minimal=True)

    steps: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        text = (peer_folder("GreedyFool") / "nips_gd.py").read_text()
        first = text.index("        logist_B = netT(real_A)")
        last = text.index("        L1_X_show")
        clip = text[text.index("def clip(") : text.index("def CWLoss(")]
        code = compile(clip + textwrap.dedent(text[first:last]), "nips_gd.py", "exec")
        return one_by_one(problem, lambda network, part: self._attack(code, network, part))

    def _attack(self, code: Any, network: Network, problem: Problem) -> Tensor:
        images, side = problem.images, problem.images.shape[-1]
        theirs = images * 2 - 1
        scaled = _Scaled(network, images, theirs)
        names = {
            "torch": torch,
            "np": np,
            "Variable": torch.autograd.Variable,
            "opt": Namespace(max_epsilon=255.0),
            "eps": 2.0,
            "Iter": self.steps,
            "boost": False,
            "netT": scaled,
            "real_A": theirs,
            "im_size": side,
            "SIZE": side * side,
            "pre_hill": torch.ones(1, 1, side * side, device=images.device),
            "loss_adv": _untargeted_margin,
        }
        exec(code, names)
        return scaled.ours(cast(Tensor, names["adv"]))


class _Scaled(torch.nn.Module):
    """The network for values in [-1, 1]; values that are unchanged are so to the last bit."""

    def __init__(self, network: Network, images: Tensor, theirs: Tensor) -> None:
        super().__init__()
        self.network, self.images, self.theirs = network, images, theirs

    def forward(self, values: Tensor) -> Tensor:
        return cast(Tensor, self.network(_Exactly.apply((values + 1) / 2, self.ours(values))))

    def ours(self, values: Tensor) -> Tensor:
        images, theirs = self.images, self.theirs
        if len(values) != len(theirs):  # their code drops images that are finished
            rows = nearest_rows(values, theirs)
            images, theirs = images[rows], theirs[rows]
        return torch.where(values == theirs, images, (values + 1) / 2).detach()


class _Exactly(torch.autograd.Function):
    """The second of two tensors that differ in rounding alone, with the gradient of the first."""

    @staticmethod
    def forward(ctx: Any, nearly: Tensor, exactly: Tensor) -> Tensor:
        return exactly.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def _untargeted_margin(logits: Tensor, label: Tensor, *_: Any, **__: Any) -> Tensor:
    """What their ``CWLoss`` is for 1000 classes and no bound, for any number of classes."""
    return Goal(label).margin(logits).sum()


@dataclass(frozen=True, kw_only=True)
class Homotopy(Peer):
    """Homotopy: github.com/VITA-Group/SparseADV_Homotopy, untargeted.

    The first lambda is worked out from one gradient; their search for the same value asks for that
    gradient thousands of times.

    Attributes:
        eps: Largest change of an element.
        growth: Most elements that a round may add.
        steps: Steps of each round.
    """

    card: ClassVar[Card] = _card(
        "authors_homotopy", "Homotopy", "gradients", minimal=True, unit="elements"
    )

    eps: float = setting(1.0, above=0, most=1)
    growth: int = setting(200, least=1)
    steps: int = setting(100, least=1)

    def run(self, problem: Problem) -> Tensor:
        unused = ("datasets", "torchvision", "torchvision.transforms", "inception_v3")
        code = load_peer("SparseADV_Homotopy", "demo_attack", unused)
        code.CWLoss = _clamped_margin  # theirs is for 1000 classes
        code.search_lambda = _first_lambda
        return one_by_one(problem, lambda network, part: self._attack(code, network, part))

    def _attack(self, code: Any, network: Network, problem: Problem) -> Tensor:
        label = int(problem.goal.labels[0])
        delta = code.homotopy(
            loss_type="cw",
            net=network,
            original_img=problem.images,
            target_class=label,
            original_class=label,
            tar=0,
            max_epsilon=self.eps,
            dec_factor=0.98,
            val_c=3,
            val_w1=1e-2,
            val_w2=1e-4,
            max_update=self.growth,
            maxiter=self.steps,
            val_gamma=0.8,
        )
        return torch.where(delta == 0, problem.images, problem.images + delta)


def _clamped_margin(logits: Tensor, label: Tensor, kappa: float = 0, tar: bool = True) -> Tensor:
    assert not tar, "untargeted"
    return Goal(label).margin(logits).clamp(min=kappa).sum()


def _first_lambda(
    loss_type: str,
    net: Network,
    original_img: Tensor,
    target_class: int,
    original_class: int,
    tar: int,
    val_c: float,
    max_update: int,
    maxiter: int,
    max_epsilon: float,
) -> float:
    """What their ``search_lambda`` returns.

    The smallest multiple of 1e-6 at which the first step of length 1e-3 changes no element, times
    0.99 until it changes one, times ``val_c``.
    """
    image = original_img.clone().requires_grad_()
    label = torch.tensor([target_class], device=image.device)
    (grad,) = torch.autograd.grad(_clamped_margin(net(image), label, tar=False), image)
    step = -1e-3 * grad
    room = step.clamp(-max_epsilon, max_epsilon)
    room = (image.detach() + room).clamp(0, 1) - image.detach()
    gain = float((step.square() - (room - step).square()).max()) / 2e-3
    lam = 1e-6 * (math.floor(gain / 1e-6) + 1)
    while gain > 0 and lam > gain:
        lam *= 0.99
    return lam * val_c


@dataclass(frozen=True, kw_only=True)
class SAPF(Peer):
    """SAPF: github.com/wubaoyuan/Sparse-Adversarial-Attack, towards a target; for ten classes.

    Groups are SLIC superpixels, as theirs. The last stage has half as many steps as the first.
    Where the gates do not settle, hundreds of elements too many change. An image with more than
    1.1 times ``k`` changed elements counts as failed.

    Attributes:
        k: Number of elements to change; theirs changes about so many.
        steps: Steps on the sizes.
        gate_steps: Steps of ADMM on the gates.
        searches: Weights that are tried.
        weight: The first weight.
        decay_every: Steps between two decays of the step.
        rho_growth: Factor of the penalties per step.
    """

    card: ClassVar[Card] = _card(
        "authors_sapf", "SAPF", "gradients", targeted=True, unit="elements"
    )

    k: int = setting(200, least=1)
    steps: int = setting(2000, least=1)
    gate_steps: int = setting(2000, least=1)
    searches: int = setting(6, least=1)
    weight: float = setting(1e-3, above=0)
    decay_every: int = setting(50, least=1)
    rho_growth: float = setting(1.01, least=1)

    def run(self, problem: Problem) -> Tensor:
        code = self._load()
        none, one = torch.zeros((), device=problem.images.device), torch.ones(())
        code.img_normalized_ops = none, one.to(none)  # the network takes values from 0 to 1
        for name, value in {
            "k": self.k,
            "maxIter_e": self.steps,
            "maxIter_g": self.gate_steps,
            "lambda1_search_times": self.searches,
            "init_lambda1": self.weight,
            "lr_decay_step": self.decay_every,
            "rho_increase_factor": self.rho_growth,
        }.items():
            setattr(code.args, name, value)
        return one_by_one(problem, lambda network, part: self._attack(code, network, part))

    def _load(self) -> Any:
        """Their module; its flags mix tabs and spaces, which Python refuses today."""
        flags = ModuleType("flags")
        text = (peer_folder("Sparse-Adversarial-Attack") / "flags.py").read_text()
        exec(compile(text.expandtabs(4), "flags.py", "exec"), flags.__dict__)
        sys.modules["flags"] = flags
        try:
            return load_peer("Sparse-Adversarial-Attack", "main")
        finally:
            del sys.modules["flags"]

    def _attack(self, code: Any, network: Network, problem: Problem) -> Tensor:
        assert problem.goal.targets is not None, "their code needs targets"
        image = problem.images
        pixels = (image[0].permute(1, 2, 0) * 255).round().byte().cpu().numpy()
        segments = code.slic(pixels, n_segments=150, compactness=10, start_label=0)
        marks = np.arange(segments.max() + 1).reshape(-1, 1, 1) == segments
        groups = torch.from_numpy(marks).to(image)[:, None].repeat(1, image.shape[1], 1, 1)
        target = int(problem.goal.targets[0])
        found = code.train_adptive(0, network, image, target, groups, torch.ones_like(image))
        adv = torch.tensor(found["adv_image"]).permute(2, 0, 1)[None].to(image)
        return adv if (adv != image).sum() <= 1.1 * self.k else image


@dataclass(frozen=True, kw_only=True)
class GSE(Peer):
    """GSE: github.com/wagnermoritz/GSE, with the settings of its paper for CIFAR-10.

    Attributes:
        steps: Steps per search at most.
        searches: Weights that are tried per image.
        freeze_after: Steps of a search after which no further pixel may change.
    """

    card: ClassVar[Card] = _card("authors_gse", "GSE", "gradients", minimal=True, targeted=True)

    steps: int = setting(200, least=1)
    searches: int = setting(10, least=1)
    freeze_after: int = setting(30, least=1)

    def run(self, problem: Problem) -> Tensor:
        code, (classes, targeted) = load_peer("GSE", "attacks"), aim(problem)
        theirs = problem.images * 2 - 1
        scaled = _Scaled(Network(problem), problem.images, theirs)
        attack = code.GSEAttack(
            scaled,
            targeted=targeted,
            search_steps=self.searches,
            iters=self.steps,
            k_hat=self.freeze_after,
            mu=1.0,
            sigma=0.005,
            q=0.25,
        )
        return scaled.ours(attack(theirs, classes))


@dataclass(frozen=True, kw_only=True)
class BruSLe(Peer):
    """BruSLeAttack: github.com/BruSLiAttack/BruSLiAttack.github.io, untargeted.

    Colours are random corners, as with their mode "uni" at scale 1. One query more than ``queries``
    is made to name the class of what fooled.

    Attributes:
        k: Number of pixels to change.
        queries: Most queries.
        swap: Share of the pixels that are swapped at first.
    """

    card: ClassVar[Card] = _card("authors_brusle", "BruSLeAttack", "scores")

    k: int = setting(50, least=1)
    queries: int = setting(1000, least=1)
    swap: float = setting(0.3, above=0, most=1)

    def run(self, problem: Problem) -> Tensor:
        unused = ("cv2", "pandas", "torchvision", "torchvision.models")
        code = load_peer("BruSLiAttack.github.io", "brusleattack", unused)
        return side_by_side(problem, lambda network, part: self._attack(code, network, part))

    def _attack(self, code: Any, network: Network, problem: Problem) -> Tensor:
        image, label = problem.images, int(problem.goal.labels[0])
        colours = np.random.choice([1.0, 0.0], size=tuple(image.shape))
        attack = code.BruSLeAttack(network, self.k, lamda=self.swap, flag=False, ftype="margin")
        start = torch.from_numpy(colours).to(image)
        found = attack.perturb(image, start, label, None, max_query=self.queries - 1)[0]
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class SparseEvo(Peer):
    """SparseEvo: github.com/SparseEvoAttack/SparseEvoAttack.github.io, untargeted.

    Starts at their salt-and-pepper noise. Its queries are part of ``queries``.

    Attributes:
        queries: Most queries; two more are made to print classes.
    """

    card: ClassVar[Card] = _card("authors_sparse_evo", "SparseEvo", "labels", minimal=True)

    queries: int = setting(2000, least=1)

    def run(self, problem: Problem) -> Tensor:
        unused = ("pudb", "pandas", "torchvision", "models", "models.modeling")
        code = load_peer("SparseEvoAttack.github.io", "spaevo_attack", unused)
        starts = load_peer("SparseEvoAttack.github.io", "utils_se", unused)
        return side_by_side(
            problem, lambda network, part: self._attack(code, starts, network, part)
        )

    def _attack(self, code: Any, starts: Any, network: Network, problem: Problem) -> Tensor:
        image, label = problem.images, int(problem.goal.labels[0])
        start, spent, _ = starts.gen_starting_point(
            network, image, label, None, "cifar10", "salt_pepper_att"
        )
        attack = code.SpaEvoAtt(network, n=4, pop_size=10, cr=0.5, mu=0.04, flag=False)
        judge = attack.feval  # gives a number of numpy, which tensors of today refuse
        attack.feval = lambda *given: float(judge(*given))
        left = self.queries - spent - 1
        found = attack.evo_perturb(image, start.to(image), label, None, max_query=left)[0]
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class SAMOO(Peer):
    """SA-MOO, untargeted.

    The repository is github.com/phoenixwilliams/
    Black-Box-Sparse-Adversarial-Attack-via-Multi-Objective-Optimisation.

    Attributes:
        k: Number of pixels to change.
        queries: Most queries; the classes of the last front come on top.
    """

    card: ClassVar[Card] = _card("authors_sa_moo", "SA-MOO", "scores")

    k: int = setting(24, least=1)
    queries: int = setting(1000, least=2)

    def run(self, problem: Problem) -> Tensor:
        folder = "Black-Box-Sparse-Adversarial-Attack-via-Multi-Objective-Optimisation"
        search = load_peer(folder, "MOAA.MOAA")
        losses = load_peer(folder, "LossFunctions")
        return side_by_side(
            problem, lambda network, part: self._attack(search, losses, network, part)
        )

    def _attack(self, search: Any, losses: Any, network: Network, problem: Problem) -> Tensor:
        saved = io.BytesIO()
        image = problem.images[0].permute(1, 2, 0).cpu().numpy()
        settings = {
            "x": image,
            "eps": self.k,
            "iterations": self.queries // 2,
            "pc": 0.1,
            "pm": 0.4,
            "pop_size": 2,
            "zero_probability": 0.3,
            "include_dist": True,
            "max_dist": 1e-5,
            "p_size": 2.0,
            "tournament_size": 2,
            "save_directory": saved,
        }
        scores = Namespace(predict=lambda images: network(images).cpu())
        loss = losses.UnTargeted(scores, int(problem.goal.labels[0]), to_pytorch=True)
        search.Attack(settings).attack(loss)
        saved.seek(0)
        best = np.load(saved, allow_pickle=True).item()["front0_imgs"][0]
        return torch.from_numpy(best).permute(2, 0, 1)[None].to(problem.images)
