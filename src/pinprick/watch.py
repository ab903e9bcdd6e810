"""Someone who watches a run: sees every candidate with its logits, and may stop the run."""

from torch import Tensor

from pinprick.goal import Goal
from pinprick.types import Counts, Images, Logits


class Watch:
    """Sees what an attack queries, and stops it between two passes. This one does nothing.

    A watched run gives the same result as any other, unless it is stopped.

    Attributes:
        stopped: Whether the run is to end. Images under attack then keep the best so far and are
            ``out_of_time``, as after a time limit. May be set from another thread.
    """

    stopped: bool = False

    def see(
        self,
        rows: Counts,
        images: Images,
        goal: Goal,
        logits: Logits,
        forwards: Tensor,
        backwards: Tensor,
    ) -> None:
        """Called after each forward pass, in the thread of the run.

        Args:
            rows: The row of the attacked image that each candidate belongs to.
            images: The candidates; copy what is to be kept, since attacks work in place.
            goal: The goal of each candidate.
            logits: The logits of each candidate.
            forwards: Forward passes so far of every image of the batch, not only of these rows.
            backwards: Backward passes so far, likewise.
        """
