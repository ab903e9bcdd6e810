"""Networks of other packages get all their weights, or none of them is used.

The loaders of those packages keep the random weights of a layer that a file does not fit, and go
on. So they run inside ``complete_weights()``, which sees every ``load_state_dict``.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from pinprick.errors import BadInput
from pinprick.zoo.weights import listed

_ONE_AT_A_TIME = threading.RLock()  # the method is swapped for every thread
_MEASURED = ("running_mean", "running_var")  # buffers that training makes


class Filled:
    """Which parameters have been filled from a file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parameters: dict[int, nn.Parameter] = {}  # held, so that no other has their place

    def note(self, net: nn.Module) -> None:
        self._parameters |= {id(one): one for one in net.parameters()}

    def check(self, net: nn.Module) -> None:
        """Raise ``BadInput`` where a parameter was not filled."""
        lost = [name for name, one in net.named_parameters() if id(one) not in self._parameters]
        if lost:
            raise misfit(self._name, f"the file lacks {listed(lost)}")


@contextmanager
def complete_weights(name: str) -> Iterator[Filled]:
    """While a file that does not fill a whole network is refused; ``name`` is the model's."""
    with _ONE_AT_A_TIME:
        kept = nn.Module.load_state_dict
        filled = Filled(name)

        def load(
            net: nn.Module, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
        ) -> Any:
            result = kept(net, state_dict, strict=strict, assign=assign)
            trained = {key for key, _ in net.named_parameters() if not _is_constant(key)}
            lost = [one for one in result.missing_keys if one in trained or one.endswith(_MEASURED)]
            if lost:
                raise misfit(name, f"the file lacks {listed(lost)}")
            filled.note(net)
            return result

        nn.Module.load_state_dict = load  # type: ignore[method-assign, assignment]
        try:
            yield filled
        finally:
            nn.Module.load_state_dict = kept  # type: ignore[method-assign]


def _is_constant(key: str) -> bool:
    """Whether it is part of the preprocessing, which robustbench fixes in its code."""
    return key.rpartition(".")[2] in ("mean", "std", "mu", "sigma")


def misfit(name: str, what: str) -> BadInput:
    return BadInput(f"the weights of {name} do not fit the network: {what}")
