"""Images between the clean and the adversarial one: some groups changed, the others as they were.

The one way in which an explanation asks the model. Questions about any images are put together,
answered in blocks of bounded size without a graph, and counted for each image by its problem.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.explain.noise.groups import Groups
from pinprick.explain.path import Gauge, class_scores
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits

Chosen = Int[Tensor, " some"]  # which image each question is about
Effects = Float[Tensor, "batch group 2"]
Members = Bool[Tensor, "some group"]  # which of its groups are changed
Pushes = Float[Tensor, "some 2"]

_ROOM_ON_A_CPU = (
    4 * 3 * 224 * 224
)  # elements of a block; larger ones leave the cache and are slower
_ROOM = 64 * 3 * 224 * 224


def block_size(images: Images, block: int | None) -> int:
    """How many images to ask about at a time."""
    if block is not None:
        return block
    room = _ROOM_ON_A_CPU if images.device.type == "cpu" else _ROOM
    return max(1, room // max(1, images[:1].numel()))


class Coalitions:
    """All images between clean and adversarial, and what the model says of them.

    Attributes:
        problem: The clean images, their random streams and the counters.
        adversarial: The images with all groups changed.
        groups: Which pixels belong together.
        classes: Two for each image: the true one and the one it is led to.
        gauge: How logits become scores.
        block: How many images to ask about at a time.
    """

    def __init__(
        self,
        problem: Problem,
        adversarial: Images,
        groups: Groups,
        rivals: Labels,
        *,
        gauge: Gauge = "centred",
        block: int | None = None,
    ) -> None:
        self.problem, self.adversarial, self.groups = problem, adversarial, groups
        self.classes = torch.stack([problem.goal.labels, rivals], dim=1)
        self.gauge: Gauge = gauge
        self.block = block_size(adversarial, block)

    def __len__(self) -> int:
        return len(self.problem)

    @property
    def everything(self) -> Bool[Tensor, "batch group"]:
        """The coalition of all groups that an image has."""
        number = torch.arange(self.groups.most, device=self.adversarial.device)
        return number < self.groups.count.unsqueeze(1)

    @cached_property
    def end_logits(self) -> tuple[Logits, Logits]:
        """What the model says of the clean and of the adversarial images, asked once."""
        rows = torch.arange(len(self), device=self.adversarial.device)
        everything = self.everything
        asked = torch.cat([torch.zeros_like(everything), everything])
        clean, adversarial = self.logits(rows.repeat(2), asked).split(len(rows))
        return clean, adversarial

    @cached_property
    def ends(self) -> tuple[Float[Tensor, "batch 2"], Float[Tensor, "batch 2"]]:
        """The pushes of the clean and of the adversarial images."""
        rows = torch.arange(len(self), device=self.adversarial.device)
        clean, adversarial = self.end_logits
        return self.push(clean, rows), self.push(adversarial, rows)

    @property
    def totals(self) -> Float[Tensor, "batch 2"]:
        """The whole obscuring and leading change; their sum is the change of the margin."""
        clean, adversarial = self.ends
        return adversarial - clean

    def logits(self, rows: Chosen, members: Members) -> Logits:
        """What the model says where the ``members`` among the groups of each row are changed."""
        assert len(rows), "nothing to ask"
        parts = zip(rows.split(self.block), members.split(self.block), strict=True)
        return torch.cat([self._ask(some, chosen) for some, chosen in parts])

    def pushes(self, rows: Chosen, members: Members) -> Pushes:
        """How far the true class is pushed down and the other one up, from where both are zero.

        The obscuring and the leading effect of a step from one coalition to another are the two
        differences between their pushes.
        """
        answers = [
            self.push(self._ask(some, chosen), some)
            for some, chosen in zip(rows.split(self.block), members.split(self.block), strict=True)
        ]
        return torch.cat(answers) if len(rows) else members.new_zeros(0, 2, dtype=torch.double)

    def push(self, logits: Logits, rows: Chosen) -> Pushes:
        """The two pushes that logits stand for."""
        scores = class_scores(logits, self.classes[rows], self.gauge)
        return scores * scores.new_tensor([-1.0, 1.0])

    @torch.no_grad()
    def _ask(self, rows: Chosen, members: Members) -> Logits:
        part, index = self.problem[rows], self.groups.index[rows].flatten(1)
        nobody = torch.zeros_like(members[:, :1])
        changed = torch.cat([nobody, members], dim=1).gather(1, index + 1)
        changed = changed.view(-1, 1, *self.adversarial.shape[2:])
        return part.logits(torch.where(changed, self.adversarial[rows], part.images))


# What a group does at the two ends: taken from the adversarial image, put into the clean one.
#
#     removed:   O_g = s_y(x' - delta_g) - s_y(x')     L_g = s_t(x') - s_t(x' - delta_g)
#     inserted:  O_g = s_y(x) - s_y(x + delta_g)       L_g = s_t(x + delta_g) - s_t(x)
#
# Their mean is the two-sided ablation. It is causal and cheap, two passes a group, but does not add
# up: where groups need one another, removal gives each the whole effect and insertion none, and
# where one would do for all it is the other way round.


@dataclass(frozen=True)
class Ablation:
    """The obscuring and the leading effect of each group, by removal and by insertion."""

    removed: Effects
    inserted: Effects

    @property
    def both(self) -> Effects:
        return (self.removed + self.inserted) / 2


def ablate(coalitions: Coalitions) -> Ablation:
    """Both sides for all groups of all images."""
    everything = coalitions.everything
    number = torch.eye(coalitions.groups.most, dtype=torch.bool, device=everything.device)
    which, group = everything.nonzero(as_tuple=True)
    alone, rest = number[group], everything[which] & ~number[group]
    asked = coalitions.pushes(which.repeat(2), torch.cat([alone, rest]))
    inserted, removed = asked.split(len(which))
    clean, adversarial = coalitions.ends
    effects = asked.new_zeros(2, len(coalitions), coalitions.groups.most, 2)
    effects[0, which, group] = adversarial[which] - removed
    effects[1, which, group] = inserted - clean[which]
    return Ablation(removed=effects[0], inserted=effects[1])


# What the model says of an image, in the few numbers that an explanation keeps.


States = Float[Tensor, "batch 6"]  # in the order of explanation.State


def states(logits: Logits, classes: Int[Tensor, "batch 2"], gauge: Gauge) -> States:
    """Guess, margin between the two classes, their scores, and their probabilities."""
    scores = class_scores(logits, classes, gauge)
    chances = class_scores(logits, classes, "log_probabilities").exp()
    raw = class_scores(logits, classes, "raw")
    guess, margin = logits.argmax(dim=1).double(), raw[:, 0] - raw[:, 1]
    return torch.cat([guess.unsqueeze(1), margin.unsqueeze(1), scores, chances], dim=1)


# The margin as groups are added one by one.
#
# The order is stated: the largest Shapley effect on the margin first, equal ones by their numbers.


@dataclass(frozen=True)
class Build:
    """From clean to adversarial, a group at a time.

    Attributes:
        order: Numbers of the groups as they are added; those that an image lacks come last.
        states: What the model says before the first group and after each; what would come after an
            image's last group is the adversarial image again.
    """

    order: Int[Tensor, "batch group"]
    states: Float[Tensor, "batch stage 6"]


def add_one_by_one(coalitions: Coalitions, effects: Effects) -> Build:
    """Ask about every stage of every image that lies between clean and adversarial."""
    count, most = coalitions.groups.count, coalitions.groups.most
    worth = effects.sum(dim=2).masked_fill(~coalitions.everything, -torch.inf)
    order = worth.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    stage = torch.arange(1, most, device=count.device)
    members = rank.unsqueeze(1) < stage.view(1, -1, 1)
    asked = stage < count.unsqueeze(1)
    rows = torch.arange(len(count), device=count.device)
    clean, adversarial = (_states(coalitions, logits, rows) for logits in coalitions.end_logits)
    stages = adversarial.unsqueeze(1).repeat(1, most + 1, 1)
    stages[:, 0] = clean
    which = rows.unsqueeze(1).expand_as(asked)[asked]
    if len(which):
        logits = coalitions.logits(which, members[asked])
        stages[:, 1:most][asked] = _states(coalitions, logits, which)
    return Build(order, stages)


def _states(coalitions: Coalitions, logits: Logits, rows: Chosen) -> States:
    return states(logits, coalitions.classes[rows], coalitions.gauge)
