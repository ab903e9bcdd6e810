"""A step that changes the attributes of some objects, recorded once and then replayed.

The step is plain code: it computes new tensors and assigns them to attributes. A recording works in
fixed memory instead. So the recorded step copies what it assigned to where the attribute was
before, and the attribute stays the same tensor.

The first step is taken as it is, which loads all kernels and shows which attributes change. The
second one is recorded, and replayed from then on, itself included. If recording fails, all steps
are taken as they are. The results have the same bits.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.errors import one_line

Attribute = tuple[BatchRows, str]


@runtime_checkable
class Capture(Protocol):
    """Records work.

    Attributes:
        remark: Why recording failed; empty text unless it did. Nothing is recorded after that.
    """

    remark: str

    def __call__(self, work: Callable[[], None], /) -> Callable[[], None]:
        """Record the work without doing it; returns what does it."""
        ...


class RecordedStep:
    """A step that is replayed from its second call on.

    Args:
        step: Takes tensors and the number of the step as a tensor of one value.
        owners: The objects whose tensors the step replaces, and no others.
        capture: Makes the recording.
    """

    def __init__(
        self, step: Callable[..., None], owners: Sequence[BatchRows], capture: Capture
    ) -> None:
        self._step, self._owners, self._capture = step, owners, capture
        self._changing: list[Attribute] | None = None
        self._fixed: list[Tensor] = []  # where the changing attributes are
        self._given: tuple[Tensor, ...] = ()
        self._replay: Callable[[], None] | None = None

    def __call__(self, adv: Tensor, logits: Tensor, grad: Tensor, number: int) -> None:
        """Take the next step; the numbers follow each other."""
        given = adv, logits, grad
        if self._replay is None and self._changing is not None and not self._capture.remark:
            self._record(given, number)
        if self._replay is None:
            before = {(id(owner), name): tensor for owner, name, tensor in self._tensors()}
            self._step(*given, torch.full((1,), number, device=adv.device))
            self._changing = [
                (owner, name)
                for owner, name, tensor in self._tensors()
                if before.get((id(owner), name)) is not tensor
            ]
            return
        for own, new in zip(self._given, given, strict=True):
            own.copy_(new)
        self._replay()

    def _record(self, given: tuple[Tensor, ...], number: int) -> None:
        assert self._changing is not None
        self._given = tuple(one.detach().clone() for one in given)
        self._number = torch.full((1,), number, device=given[0].device)
        self._fixed = [getattr(owner, name).clone() for owner, name in self._changing]
        self._put_back()
        try:
            self._replay = self._capture(self._once)
        except Exception as error:  # of any kind, from the device
            self._put_back()
            self._capture.remark = f"steps of the attack cannot be recorded: {one_line(error)}"

    def _once(self) -> None:
        """The step, in fixed memory."""
        assert self._changing is not None
        self._step(*self._given, self._number)
        made = [getattr(owner, name) for owner, name in self._changing]
        places = {id(tensor) for tensor in self._fixed}
        made = [one.clone() if id(one) in places else one for one in made]
        for fixed, new in zip(self._fixed, made, strict=True):
            fixed.copy_(new)
        self._put_back()
        self._number.add_(1)

    def _put_back(self) -> None:
        assert self._changing is not None
        for (owner, name), fixed in zip(self._changing, self._fixed, strict=True):
            setattr(owner, name, fixed)

    def _tensors(self) -> Iterator[tuple[BatchRows, str, Tensor]]:
        """All tensors of the owners, and of what they hold."""
        owners = list(self._owners)
        while owners:
            owner = owners.pop()
            for name, value in vars(owner).items():
                if isinstance(value, Tensor):
                    yield owner, name, value
                elif isinstance(value, BatchRows):
                    owners.append(value)
