"""How fast a run queries its model: exactly, replayed, in bfloat16 and confirmed, or compiled.

    exact     the model itself
    graphs    the same arithmetic, recorded and replayed (``replay.py``)
    fast      a copy in bfloat16 (``bfloat16_copy.py``), recorded and replayed, whose candidates are
              confirmed in float32 where they nearly meet the goal (``confirmed_search.py``)
    compiled  the same, with the copy compiled (``compiled_model.py``)

A candidate of the last two whose margin is beyond the noise is believed. So the referee checks each
image that is returned, and attacks it again in float32 where it was believed in error (``run.py``).
"""

import time
from collections.abc import Callable
from itertools import chain
from types import TracebackType
from typing import Any

import torch
from torch import nn

from pinprick.bfloat16_copy import CONVERTED, bfloat16_copy
from pinprick.compiled_model import CompiledModel
from pinprick.confirmed_search import ConfirmedSearch, confirmed_of
from pinprick.cuda_graph import CudaGraphs
from pinprick.errors import one_line
from pinprick.goal import Goal
from pinprick.model import Classifier, Model
from pinprick.replay import Recorder, ReplayedModel, padded, padded_size
from pinprick.speed_names import Speed, check_speed
from pinprick.types import Images, Logits, Mask

_SAFETY = 2.0  # times the largest change of a clean image's margin: the noise to begin with
_PROBES = 8  # images to compare a copy of the network on
_SMALL = 2**33  # multiplications of a forward pass up to which bfloat16 saves no time
_SMALL_ALONE = 2**35  # the same without a backward pass, where a confirmation weighs more


class ModelPasses:
    """The model of a run as the attack queries it. Released at the end of ``with``.

    Attributes:
        speed: What was asked for.
        remark: Why it is slower than that; empty text if it is not.
        confirmations: Candidates that were confirmed in float32; they are not counted as passes.
        judged: Which candidates of the latest pass have logits in float32; None for all.

    Args:
        model: The model.
        speed: The speed.
        recorder: Gives a recorder, anew for each kind of passes; None to record CUDA graphs.
        coarse: The model for the search of ``fast``; None to copy the network in bfloat16.
        backend: What ``torch.compile`` hands its graphs to.
    """

    def __init__(
        self,
        model: Classifier,
        speed: Speed = "exact",
        *,
        recorder: Callable[[], Recorder] | None = None,
        coarse: Model | None = None,
        backend: str | Callable[..., Any] = "inductor",
    ) -> None:
        self.model, self.speed = model, check_speed(speed)
        self.remark, self.confirmations = "", 0
        self.judged: Mask | None = None
        self._given, self._coarse, self._backend = recorder, coarse, backend
        self._weights: tuple[Any, ...] = ()
        self._recorders: list[CudaGraphs] = []
        self._judge: Model = model
        self._search: ConfirmedSearch | None = None
        self._plain: Model = model  # the model of the search, not compiled
        self._compiled: CompiledModel | None = None
        self._replayed_search: ReplayedModel | None = None
        self._work = 0  # multiplications of a forward pass per image
        self._before: dict[str, Any] = {}

    def begin(self, images: Images, clean_logits: Logits) -> None:
        """Get ready for a batch; recordings are of use as long as the weights stay in place."""
        if self.speed == "exact" or not len(images):
            return
        weights, prepared = _weights(self.model), 0.0
        if weights != self._weights or self._judge is self.model:
            self.release()
            self._weights = weights
            start = time.perf_counter()
            self._prepare(images, clean_logits)
            prepared = time.perf_counter() - start
        self._before = self._spent()
        self._before["recording_seconds"] -= prepared
        if self._search is not None:
            with torch.no_grad():
                coarse = self._plain(padded(images, padded_size(len(images))))
                change = (coarse[: len(images)] - clean_logits).nan_to_num(0.0, 0.0, 0.0)
                largest = (change.amax(dim=1) - change.amin(dim=1)).amax()
                self._search.noise.copy_(_SAFETY * largest)  # no batch depends on those before it

    @property
    def confirms(self) -> bool:
        """Whether logits may be in bfloat16."""
        return self._search is not None

    @property
    def _is_only_slower(self) -> bool:
        """Whether the search was to be compiled, cannot be, and saves no time without."""
        failed = self._compiled is not None and self._compiled.remark != ""
        return failed and _is_depthwise(self.model)

    @property
    def memory(self) -> int:
        """Bytes of GPU memory that recordings take."""
        return sum(recorder.memory for recorder in self._recorders)

    @property
    def _replayed(self) -> list[ReplayedModel]:
        both = (self._judge, self._replayed_search)
        return [one for one in both if isinstance(one, ReplayedModel)]

    @property
    def _made(self) -> list[ReplayedModel | CompiledModel]:
        return [*self._replayed, *([self._compiled] if self._compiled else [])]

    def _spent(self) -> dict[str, Any]:
        return {
            "recordings": sum(len(model.recordings) for model in self._replayed),
            "recording_seconds": sum((model.seconds for model in self._made), 0.0),
            "confirmations": self.confirmations,
        }

    def note(self, remark: str = "") -> dict[str, Any] | None:
        """What the result of a batch says of the speed; None for exact where nothing is remarked.

        Recordings, the seconds that they, the copy in bfloat16 and its compilation took, and
        confirmations are those since the batch began. ``remark`` says why the attack's own steps
        are slow.
        """
        if self.speed == "exact" and not remark:
            return None
        remarks = [self.remark, *(model.remark for model in self._made), remark]
        spent = {name: after - self._before.get(name, 0) for name, after in self._spent().items()}
        return {
            "speed": self.speed,
            "remark": "; ".join(dict.fromkeys(filter(None, remarks))),
            **spent,
        }

    def __call__(self, images: Images, goal: Goal, float32: bool = False) -> Logits:
        """Logits of candidates; those within the noise of the goal's boundary are in float32.

        All logits of a small pass are.
        """
        with_gradient = torch.is_grad_enabled() and images.requires_grad
        small = _SMALL if with_gradient else _SMALL_ALONE
        float32 = float32 or len(images) * self._work <= small or self._is_only_slower
        self.judged = None
        if self._search is None or self._replayed_search is None or float32:
            return self._judge(images)
        self.confirmations += min(len(images), confirmed_of(padded_size(len(images))))
        values = self._replayed_search(images, self._search.aim(goal))
        self.judged = values[:, -1].detach() > 0
        return values[:, :-1]

    def _prepare(self, images: Images, logits: Logits) -> None:
        """Replay passes where that is possible; else ``remark`` says why it is not."""
        self.remark = _obstacle(self.model, images, given=self._given is not None)
        if self.remark:
            return
        self._judge = ReplayedModel(self.model, self._recorder())
        if self.speed == "graphs":
            return
        if plain := self._coarse or self._copy(images[:_PROBES]):
            self._work, self._plain = _multiplications(self.model, images[:1]), plain
            if self.speed == "compiled" and isinstance(plain, Classifier):
                self._compiled = CompiledModel(plain, self.model, self._backend)
            self._search = ConfirmedSearch(self._compiled or plain, self.model, logits)
            self._replayed_search = ReplayedModel(self._search, self._recorder())

    def _copy(self, images: Images) -> Classifier | None:
        """The network in bfloat16; None where that fails, and ``remark`` says why."""
        self.remark = _obstacle_to_bfloat16(self.model, images, compiled=self.speed == "compiled")
        if self.remark:
            return None
        try:
            coarse = bfloat16_copy(self.model, images)
            with torch.no_grad():
                coarse(images)
        except Exception as error:  # of any kind, from a network of the user's own
            self.remark = f"this network has no copy in bfloat16: {one_line(error)}"
            return None
        return coarse

    def _recorder(self) -> Recorder:
        if self._given is not None:
            return self._given()
        self._recorders.append(CudaGraphs())
        return self._recorders[-1]

    def release(self) -> None:
        """Give back the memory of all recordings."""
        had = bool(self._recorders)
        self._judge, self._search, self._replayed_search = self.model, None, None
        self._plain, self._compiled = self.model, None
        self._recorders.clear()
        if had:
            torch.cuda.empty_cache()

    def __enter__(self) -> "ModelPasses":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _obstacle(model: Classifier, images: Images, *, given: bool) -> str:
    """Why passes cannot be replayed; empty text if they can."""
    if model.sent is not None or not isinstance(model.net, nn.Module):
        return f"{model.name} is no network, so its passes are not recorded"
    if not images.is_cuda and not given:
        return f"passes are recorded on a GPU only, not on {images.device.type}"
    return ""


def _obstacle_to_bfloat16(model: Classifier, images: Images, *, compiled: bool) -> str:
    """Why a search is in float32; empty text if it is in bfloat16."""
    if images.dtype != torch.float32:
        return f"images of {images.dtype} are not searched in bfloat16"
    if _is_depthwise(model) and not compiled:  # measured: five times as slow
        return (
            "networks with depthwise convolutions are not searched in bfloat16, "
            "unless it is compiled (speed=compiled)"
        )
    return ""


def _is_depthwise(model: Classifier) -> bool:
    """Whether the network has depthwise convolutions."""
    assert isinstance(model.net, nn.Module)
    kinds = [one for one in model.net.modules() if isinstance(one, nn.Conv2d)]
    return any(one.groups == one.in_channels > 1 for one in kinds)


def _multiplications(model: Classifier, image: Images) -> int:
    """Multiplications of one image's forward pass in convolutions and linear layers."""
    assert isinstance(model.net, nn.Module)
    counts: list[int] = []

    def count(layer: nn.Module, _: Any, made: Any) -> None:
        counts.append(made.numel() * layer.weight[0].numel())  # type: ignore[index]

    hooks = [
        layer.register_forward_hook(count)
        for layer in model.net.modules()
        if isinstance(layer, CONVERTED)
    ]
    with torch.no_grad():
        model(image)
    for hook in hooks:
        hook.remove()
    return sum(counts)


def _weights(model: Classifier) -> tuple[Any, ...]:
    """Changes whenever a weight is replaced or written to."""
    if not isinstance(model.net, nn.Module):
        return ()
    tensors = chain(model.net.parameters(), model.net.buffers())
    return tuple((tensor.data_ptr(), tensor._version) for tensor in tensors)
