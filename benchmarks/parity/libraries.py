"""Attacks of adv-lib, Foolbox and torchattacks as attacks of this package (see ``peer.py``).

Foolbox and torchattacks come from pip, adv-lib from its repository (jeromerony/adversarial-library)
in the folder ``PINPRICK_PEERS``. Settings have our names; others have the libraries' defaults.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from benchmarks.parity.peer import Network, Peer, aim, load_peer, one_by_one, side_by_side
from torch import Tensor

from pinprick import Card, Problem, setting
from pinprick.model import Access
from pinprick.parts.starts import find_starts

_ORDERS = {"l0": 0, "l1": 1, "l2": 2, "linf": math.inf}
Norm = Literal["l0", "l1", "l2", "linf"]


def _advlib() -> Any:
    return load_peer("adversarial-library", "adv_lib.attacks", ("visdom",))


def _card(
    name: str,
    title: str,
    norm: Norm,
    *,
    targeted: bool = False,
    random: bool = False,
    access: Access = "gradients",
) -> Card:
    return Card(
        name=name,
        title=title,
        norm=norm,
        unit="elements" if norm == "l0" else None,
        kind="minimal",
        access=access,
        targeted=targeted,
        random=random,
        paper="",
    )


@dataclass(frozen=True, kw_only=True)
class AdvlibSigmaZero(Peer):
    """σ-zero of adv-lib, which is untargeted.

    Attributes:
        steps: Number of steps.
    """

    card: ClassVar[Card] = _card("advlib_sigma_zero", "σ-zero of adv-lib", "l0")

    steps: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        images, labels = problem.images.clone(), problem.goal.labels
        return cast(
            Tensor,
            _advlib().sigma_zero(Network(problem), images, labels, num_steps=self.steps),
        )


@dataclass(frozen=True, kw_only=True)
class AdvlibFMN(Peer):
    """FMN of adv-lib.

    Attributes:
        norm: What is kept small.
        steps: Number of steps.
    """

    card: ClassVar[Card] = _card("advlib_fmn", "FMN of adv-lib", "l0", targeted=True)

    norm: Norm = "l0"
    steps: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        order, images, (classes, targeted) = (
            _ORDERS[self.norm],
            problem.images.clone(),
            aim(problem),
        )
        found = _advlib().fmn(
            Network(problem), images, classes, norm=order, targeted=targeted, steps=self.steps
        )
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class AdvlibVFGA(Peer):
    """VFGA of adv-lib.

    Attributes:
        steps: Most steps, each of which changes one element; None for as many as there are.
        samples: Random amounts per step and direction.
    """

    card: ClassVar[Card] = _card("advlib_vfga", "VFGA of adv-lib", "l0", targeted=True, random=True)

    steps: int | None = setting(None, least=1)
    samples: int = setting(10, least=1)

    def run(self, problem: Problem) -> Tensor:
        images, (classes, targeted) = problem.images.clone(), aim(problem)
        found = _advlib().vfga(
            Network(problem),
            images,
            classes,
            targeted,
            max_iter=self.steps,
            n_samples=self.samples,
        )
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class AdvlibPDPGD(Peer):
    """PDPGD of adv-lib in l0.

    Attributes:
        steps: Number of gradient steps.
        prox: The proximal step.
    """

    card: ClassVar[Card] = _card("advlib_pdpgd", "PDPGD of adv-lib", "l0", targeted=True)

    steps: int = setting(500, least=1)
    prox: Literal["l0", "l2/3"] = "l0"

    def run(self, problem: Problem) -> Tensor:
        images, (classes, targeted) = problem.images.clone(), aim(problem)
        found = _advlib().pdpgd(
            Network(problem),
            images,
            classes,
            norm=0,
            targeted=targeted,
            num_steps=self.steps,
            proximal_operator={"l0": None, "l2/3": 23}[self.prox],
        )
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class FoolboxFMN(Peer):
    """FMN of Foolbox in l0; its l2 does not project.

    Attributes:
        steps: Number of steps.
    """

    card: ClassVar[Card] = _card("foolbox_fmn", "FMN of Foolbox", "l0", targeted=True)

    steps: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        import foolbox

        attack = foolbox.attacks.L0FMNAttack(steps=self.steps)
        found = attack.run(_for_foolbox(Network(problem)), problem.images, _criterion(problem))
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class FoolboxHopSkipJump(Peer):
    """HopSkipJump of Foolbox, from the starts that ours finds.

    It takes one image at a time: in a batch it divides every gradient by the norm of all of them
    together, which makes its steps shorter the more images there are.

    Attributes:
        norm: What is kept small.
        steps: Number of steps.
    """

    card: ClassVar[Card] = _card("foolbox_hopskipjump", "HopSkipJump of Foolbox", "l2", random=True)

    norm: Literal["l2", "linf"] = "l2"
    steps: int = setting(10, least=1)

    def run(self, problem: Problem) -> Tensor:
        return one_by_one(problem, self._attack)

    def _attack(self, network: Network, problem: Problem) -> Tensor:
        import foolbox

        from pinprick.attacks import HopSkipJump

        starts = find_starts(problem, HopSkipJump()._noise, tries=100, queries=100)
        attack = foolbox.attacks.HopSkipJumpAttack(
            steps=self.steps, constraint=self.norm, initial_gradient_eval_steps=100
        )
        found = attack.run(
            _for_foolbox(network),
            problem.images,
            _criterion(problem),
            starting_points=starts.images,
        )
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class FoolboxPointwise(Peer):
    """Pointwise of Foolbox, without its second phase, which lowers l2 alone.

    It takes one image at a time: in a batch it queries every image as long as any image goes on.

    Attributes:
        tries: Noisy images that are queried to find a start.
    """

    card: ClassVar[Card] = _card(
        "foolbox_pointwise", "Pointwise of Foolbox", "l0", random=True, access="labels"
    )

    tries: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        return one_by_one(problem, self._attack)

    def _attack(self, network: Network, problem: Problem) -> Tensor:
        import foolbox

        model, criterion = _for_foolbox(network), _criterion(problem)
        noise = foolbox.attacks.SaltAndPepperNoiseAttack(steps=self.tries)
        start = noise.run(model, problem.images, criterion)
        if (start == problem.images).all():  # none of them fools
            return problem.images
        attack = foolbox.attacks.PointwiseAttack(l2_binary_search=False)
        found = attack.run(model, problem.images, criterion, starting_points=start)
        return cast(Tensor, found)


@dataclass(frozen=True, kw_only=True)
class FoolboxBrendelBethge(Peer):
    """Brendel & Bethge of Foolbox in l0, from its own starts; it needs numba.

    Its first radius grows with the number of images in a batch. Changes up to 1e-4, which it does
    not count, are undone.

    Attributes:
        steps: Number of steps.
    """

    card: ClassVar[Card] = _card(
        "foolbox_brendel_bethge", "Brendel & Bethge of Foolbox", "l0", random=True
    )

    steps: int = setting(1000, least=1)

    def run(self, problem: Problem) -> Tensor:
        import foolbox

        attack = foolbox.attacks.L0BrendelBethgeAttack(steps=self.steps)
        found = attack.run(_for_foolbox(Network(problem)), problem.images, _criterion(problem))
        unchanged = (found - problem.images).abs() <= 1e-4
        return problem.images.where(unchanged, found)


def _for_foolbox(network: Network) -> Any:
    import foolbox

    return foolbox.PyTorchModel(network, bounds=(0, 1), device=network.device_mark.device)


def _criterion(problem: Problem) -> Any:
    import foolbox

    classes, targeted = aim(problem)
    if targeted:
        return foolbox.criteria.TargetedMisclassification(classes)
    return foolbox.criteria.Misclassification(classes)


@dataclass(frozen=True, kw_only=True)
class AdvlibStrAttack(Peer):
    """StrAttack of adv-lib.

    Attributes:
        steps: Steps of each search.
        searches: Weights that are tried.
        group: Side of a group of pixels.
        refine: Whether to run its last stage.
    """

    card: ClassVar[Card] = _card("advlib_strattack", "StrAttack of adv-lib", "l0")

    steps: int = setting(200, least=1)
    searches: int = setting(4, least=1)
    group: int = setting(2, least=1)
    refine: bool = True

    def run(self, problem: Problem) -> Tensor:
        return cast(
            Tensor,
            _advlib().str_attack(
                Network(problem),
                problem.images.clone(),
                problem.goal.labels,
                binary_search_steps=self.searches,
                max_iterations=self.steps,
                group_size=self.group,
                stride=self.group,
                retrain=self.refine,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class AdvlibCWL2(Peer):
    """C&W L2 of adv-lib, run to the end: it stops when the loss of the whole batch stands still.

    Attributes:
        steps: Steps of each search.
        searches: Weights that are tried.
        lr: Learning rate.
        weight: The first weight.
    """

    card: ClassVar[Card] = _card("advlib_cw_l2", "C&W L2 of adv-lib", "l2")

    steps: int = setting(200, least=1)
    searches: int = setting(5, least=1)
    lr: float = setting(0.05, above=0)
    weight: float = setting(0.1, above=0)

    def run(self, problem: Problem) -> Tensor:
        return cast(
            Tensor,
            _advlib().carlini_wagner_l2(
                Network(problem),
                problem.images.clone(),
                problem.goal.labels,
                learning_rate=self.lr,
                initial_const=self.weight,
                binary_search_steps=self.searches,
                max_iterations=self.steps,
                abort_early=False,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class TorchattacksJSMA(Peer):
    """JSMA of torchattacks, towards a target.

    Attributes:
        steps: Pairs of elements that may be raised.
    """

    card: ClassVar[Card] = _card("torchattacks_jsma", "JSMA of torchattacks", "l0", targeted=True)

    steps: int = setting(250, least=1)

    def run(self, problem: Problem) -> Tensor:
        import torchattacks

        share = 2 * self.steps / problem.images[0].numel()
        attack = torchattacks.JSMA(Network(problem), theta=1.0, gamma=share)
        attack.set_mode_targeted_by_label(quiet=True)
        return cast(Tensor, attack(problem.images.clone(), problem.goal.targets))


@dataclass(frozen=True, kw_only=True)
class TorchattacksSparseFool(Peer):
    """SparseFool of torchattacks.

    Attributes:
        lam: How far beyond the boundary the plane lies.
        steps: Most rounds.
    """

    card: ClassVar[Card] = _card("torchattacks_sparsefool", "SparseFool of torchattacks", "l0")

    lam: float = setting(3.0, least=1)
    steps: int = setting(20, least=1)

    def run(self, problem: Problem) -> Tensor:
        import torchattacks

        attack = torchattacks.SparseFool(Network(problem), steps=self.steps, lam=self.lam)
        return cast(Tensor, attack(problem.images.clone(), problem.goal.labels))


@dataclass(frozen=True, kw_only=True)
class TorchattacksPixle(Peer):
    """Pixle of torchattacks.

    Attributes:
        rounds: Number of times that the best try becomes the next image to try from.
        tries: Tries per round.
        least_side: Least width and height of the rectangle.
        most_side: Greatest width and height of the rectangle.
    """

    card: ClassVar[Card] = _card(
        "torchattacks_pixle", "Pixle of torchattacks", "l0", random=True, access="scores"
    )

    rounds: int = setting(20, least=1)
    tries: int = setting(10, least=1)
    least_side: int = setting(2, least=1)
    most_side: int = setting(10, least=1)

    def run(self, problem: Problem) -> Tensor:
        return side_by_side(problem, self._attack)

    def _attack(self, network: Network, problem: Problem) -> Tensor:
        import torchattacks

        sides = (self.least_side, self.most_side)
        attack = torchattacks.Pixle(
            network,
            x_dimensions=sides,
            y_dimensions=sides,
            restarts=self.rounds,
            max_iterations=self.tries,
        )
        return cast(Tensor, attack(problem.images.clone(), problem.goal.labels))
