"""Images between the clean and the adversarial one: a coalition of groups is changed.

All forward passes of an explanation go through ``Coalitions``, except those for single pixels and
for the path. They run in blocks of bounded size without a graph. The problem counts them per image.
"""

from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.explain.class_scores import Gauge, class_scores
from pinprick.explain.noise.explanation import ModelOutput
from pinprick.explain.noise.groups import Groups
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits

Rows = Int[Tensor, " some"]  # the image of each coalition
Members = Bool[Tensor, "some group"]  # the changed groups of each coalition
CoalitionValues = Float[Tensor, "some 2"]
Effects = Float[Tensor, "batch group 2"]  # obscuring and leading
Outputs = Float[Tensor, "some 6"]  # the fields of ModelOutput, in their order

_BLOCK_ON_CPU = 4 * 3 * 224 * 224  # elements; larger blocks leave the cache and are slower
_BLOCK = 64 * 3 * 224 * 224


class Coalitions:
    """All images between clean and adversarial, and the model's outputs for them.

    Attributes:
        problem: The clean images, their random streams and the counters.
        adversarial: The images with all groups changed.
        groups: The group of each changed pixel.
        classes: Two per image: the true class and the rival.
        gauge: How logits become scores.
        block: Images per forward pass.
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
        self.block = _block_size(adversarial) if block is None else block

    def __len__(self) -> int:
        return len(self.problem)

    @property
    def everything(self) -> Bool[Tensor, "batch group"]:
        """The coalition of all groups that an image has."""
        number = torch.arange(self.groups.most, device=self.adversarial.device)
        return number < self.groups.count.unsqueeze(1)

    @cached_property
    def end_logits(self) -> tuple[Logits, Logits]:
        """Logits of the clean and of the adversarial images, computed once."""
        rows = torch.arange(len(self), device=self.adversarial.device)
        everything = self.everything
        members = torch.cat([torch.zeros_like(everything), everything])
        clean, adversarial = self.logits(rows.repeat(2), members).split(len(rows))
        return clean, adversarial

    @cached_property
    def end_values(self) -> tuple[Float[Tensor, "batch 2"], Float[Tensor, "batch 2"]]:
        """The values of the clean and of the adversarial images."""
        rows = torch.arange(len(self), device=self.adversarial.device)
        clean, adversarial = self.end_logits
        return self._values(clean, rows), self._values(adversarial, rows)

    @property
    def totals(self) -> Float[Tensor, "batch 2"]:
        """The whole obscuring and leading effect; their sum is the change of the margin."""
        clean, adversarial = self.end_values
        return adversarial - clean

    def logits(self, rows: Rows, members: Members) -> Logits:
        """Logits of each image in ``rows`` with the ``members`` among its groups changed."""
        assert len(rows), "no coalition given"
        parts = zip(rows.split(self.block), members.split(self.block), strict=True)
        return torch.cat([self._logits(some, chosen) for some, chosen in parts])

    def values(self, rows: Rows, members: Members) -> CoalitionValues:
        """The obscuring and the leading value of each coalition: -s_y and s_t.

        The effects of a step from one coalition to another are the differences of their values.
        """
        values = [
            self._values(self._logits(some, chosen), some)
            for some, chosen in zip(rows.split(self.block), members.split(self.block), strict=True)
        ]
        return torch.cat(values) if len(rows) else members.new_zeros(0, 2, dtype=torch.double)

    def outputs(self, logits: Logits, rows: Rows) -> Outputs:
        """What an explanation records of the logits of ``rows``."""
        return outputs(logits, self.classes[rows], self.gauge)

    def _values(self, logits: Logits, rows: Rows) -> CoalitionValues:
        scores = class_scores(logits, self.classes[rows], self.gauge)
        return scores * scores.new_tensor([-1.0, 1.0])

    @torch.no_grad()
    def _logits(self, rows: Rows, members: Members) -> Logits:
        part, index = self.problem[rows], self.groups.index[rows].flatten(1)
        unchanged = torch.zeros_like(members[:, :1])  # the pixels of no group, whose index is -1
        changed = torch.cat([unchanged, members], dim=1).gather(1, index + 1)
        changed = changed.view(-1, 1, *self.adversarial.shape[2:])
        return part.logits(torch.where(changed, self.adversarial[rows], part.images))


def outputs(logits: Logits, classes: Int[Tensor, "batch 2"], gauge: Gauge) -> Outputs:
    """Prediction, margin between the two classes, their scores, and their probabilities."""
    scores = class_scores(logits, classes, gauge)
    probabilities = class_scores(logits, classes, "log_probabilities").exp()
    raw = class_scores(logits, classes, "raw")
    prediction, margin = logits.argmax(dim=1).double(), raw[:, 0] - raw[:, 1]
    columns = [prediction.unsqueeze(1), margin.unsqueeze(1), scores, probabilities]
    return torch.cat(columns, dim=1)


def as_model_output(row: list[float]) -> ModelOutput:
    """A row of ``Outputs`` by name."""
    prediction, margin, true, adversarial, true_probability, adversarial_probability = row
    return ModelOutput(
        guess=int(prediction),
        margin=margin,
        true_score=true,
        adversarial_score=adversarial,
        true_probability=true_probability,
        adversarial_probability=adversarial_probability,
    )


def _block_size(images: Images) -> int:
    room = _BLOCK_ON_CPU if images.device.type == "cpu" else _BLOCK
    return max(1, room // max(1, images[:1].numel()))
