"""Sparse-PGD with rows, columns and patches by its authors' code (see ``peer.py``).

The repository, github.com/CityU-MLO/sPGD, has it since the version of 2025 of the paper.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from benchmarks.parity.peer import Network, Peer, load_peer
from torch import Tensor

from pinprick import Card, Problem, setting

_MODES = {"row": "row", "column": "col", "patch": "patch"}


@dataclass(frozen=True, kw_only=True)
class StructuredSparsePGD(Peer):
    """Structured Sparse-PGD, untargeted.

    Attributes:
        k: Number of groups to change.
        steps: Number of steps.
        projected: Whether the gradient of the magnitudes is that of the projected mask.
        group: What k counts.
        patch_size: Side of a patch, in pixels.
    """

    card: ClassVar[Card] = Card(
        name="authors_structured_sparse_pgd",
        title="Structured Sparse-PGD, authors' code",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="gradients",
        targeted=False,
        random=True,
        paper="",
    )

    k: int = setting(2, least=1)
    steps: int = setting(300, least=1)
    projected: bool = True
    group: Literal["row", "column", "patch"] = "row"
    patch_size: int = setting(3, least=1)

    def run(self, problem: Problem) -> Tensor:
        code = load_peer("sPGD/autoattack", "spgd", ("skimage", "skimage.util"))
        attack = code.StructureSparsePGD(
            _MODES[self.group],
            Network(problem),
            patch_size=self.patch_size,
            k=self.k,
            t=self.steps,
            unprojected_gradient=not self.projected,
        )
        return cast(Tensor, attack(problem.images.clone(), problem.goal.labels.clone())[0])
