"""Models that give scores and nothing else: any function of images, such as a remote service.

    def ask(images):                     # (batch, channel, height, width) in [0, 1], float32
        return service.classify(images)  # (batch, classes), or class numbers with access="labels"

    model = score_model(ask, name="my-service", per_second=5, cache="answers")

The function gets at most ``max_batch`` images per call, and ``per_second`` calls per second. A call
that fails temporarily, or takes longer than ``timeout`` seconds, is retried. No image is sent twice
while its answer is cached. ``model.sent`` counts what was sent.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from PIL.Image import Image
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.scores.answers import Answers
from pinprick.scores.calls import Calls, Temporary, is_temporary
from pinprick.scores.service import Service
from pinprick.types import Picture

_DAY = 24 * 60 * 60  # seconds


def score_model(
    function: Callable[[Tensor], Any],
    *,
    name: str,
    version: str = "",
    access: Literal["scores", "labels"] = "scores",
    classes: Sequence[str] = (),
    size: tuple[int, int] | None = None,
    prepare: Callable[[Image], Picture] | None = None,
    probabilities: bool = False,
    max_batch: int = 32,
    retries: int = 5,
    backoff: float = 0.5,
    temporary: Temporary = is_temporary,
    per_second: float | None = None,
    timeout: float | None = 120.0,
    cache: str | Path | None = None,
    remember: int = 4096,
) -> Classifier:
    """A function from images to scores as a ``Classifier``, with retries, rate limit and cache.

    Args:
        function: Gets float32 images in [0, 1] on the CPU, and returns one row of scores per image;
            with ``access="labels"`` one class number per image is enough.
        name: Name of the model, in tables and in the cache.
        version: Version of the model; answers of other versions in the cache are not used.
        access: "scores", or "labels" where only the top class may be used.
        classes: Names of the classes; needed where the answers are class numbers.
        size: As for ``Classifier``.
        prepare: As for ``Classifier``.
        probabilities: Whether the scores are probabilities; their logarithms are used then.
        max_batch: Most images per call.
        retries: How often a failed call is retried.
        backoff: Seconds before the first retry; they double, up to a minute. A ``Retry-After`` of
            the service is kept, up to ten minutes.
        temporary: Which exceptions are retried: types, or a function of the exception. By default
            network errors, and HTTP errors that say so.
        per_second: Most calls per second.
        timeout: Seconds after which a call is abandoned and retried; None for no limit. Calls run
            in a thread of their own; with None in the caller's.
        cache: A folder for answers, which processes and models may share.
        remember: How many answers are cached in memory; 0 for none, where answers are random.
            Without a cache every image of a batch is then sent, equal ones too.
    """
    for what, value, least in (
        ("max_batch", max_batch, 1),
        ("retries", retries, 0),
        ("remember", remember, 0),
    ):
        if value < least:
            raise BadInput(f"{what} must be at least {least}, got {value}")
    if not 0 <= backoff < math.inf:
        raise BadInput(f"backoff must be seconds from 0 on, got {backoff}")
    if per_second is not None and not 1 / _DAY <= per_second < math.inf:
        raise BadInput(f"per_second must be at least one call per day, or None, got {per_second}")
    if timeout is not None and not 0 < timeout < math.inf:
        raise BadInput(f"timeout must be seconds above 0, or None, got {timeout}")
    kind = "labels" if access == "labels" else "probabilities" if probabilities else "scores"
    service = Service(
        Calls(
            function,
            name=name,
            retries=retries,
            backoff=backoff,
            temporary=temporary,
            per_second=per_second,
            timeout=timeout,
        ),
        Answers(name, version, kind, folder=cache, remember=remember),
        max_batch=max_batch,
        classes=len(classes),
        labels_only=access == "labels",
        probabilities=probabilities,
    )
    return Classifier(
        service, classes=classes, size=size, prepare=prepare, access=access, name=name
    )
