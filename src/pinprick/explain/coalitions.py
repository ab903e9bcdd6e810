"""Images between the clean and the adversarial one: some groups changed, the others as they were.

The one way in which an explanation asks the model. Questions about any images are put together,
answered in blocks of bounded size without a graph, and counted for each image by its problem.
"""

from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.explain.gauge import Gauge, class_scores
from pinprick.explain.groups import Groups
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits

Chosen = Int[Tensor, " some"]  # which image each question is about
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
