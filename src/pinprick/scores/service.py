"""The network of a ``score_model``: cached answers, calls in batches, and what was sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pinprick.errors import BadInput, NoAnswer
from pinprick.scores.answers import Answers, Row
from pinprick.scores.calls import BadAnswer, Calls
from pinprick.types import Images, Logits

_TINY = 1e-30  # smaller probabilities are set to this


@dataclass(frozen=True)
class Sent:
    """What was sent to a service, and what was answered from the cache.

    Attributes:
        asked: Queries, in images.
        cached: Queries that were cached already, or twice in the same batch.
        images: Images in all calls; those of a failed call count each time.
        requests: Calls.
        failures: Failed calls.
        unanswered: Queries without an answer in the end.
    """

    asked: int = 0
    cached: int = 0
    images: int = 0
    requests: int = 0
    failures: int = 0
    unanswered: int = 0

    def __sub__(self, other: "Sent") -> "Sent":
        """What was sent since ``other``."""
        mine, theirs = vars(self), vars(other)
        return Sent(**{name: mine[name] - theirs[name] for name in mine})

    def __add__(self, other: "Sent") -> "Sent":
        mine, theirs = vars(self), vars(other)
        return Sent(**{name: mine[name] + theirs[name] for name in mine})


class Service:
    """The network of a ``score_model``: images in [0, 1] in, scores out, no gradient."""

    def __init__(
        self,
        calls: Calls,
        answers: Answers,
        *,
        max_batch: int,
        classes: int,
        labels_only: bool,
        probabilities: bool,
    ) -> None:
        self._calls, self._answers, self._max_batch = calls, answers, max_batch
        self._classes = classes  # 0 while unknown
        self._labels_only, self._probabilities = labels_only, probabilities
        self._asked = self._cached = self._unanswered = 0

    @property
    def sent(self) -> Sent:
        """What was sent so far."""
        calls = self._calls
        return Sent(
            asked=self._asked,
            cached=self._cached,
            images=calls.images,
            requests=calls.requests,
            failures=calls.failures,
            unanswered=self._unanswered,
        )

    def __call__(self, images: Images) -> Logits:
        plain = images.detach().to("cpu", torch.float32).contiguous()
        keys = self._answers.keys(plain)
        first = {key: row for row, key in reversed(list(enumerate(keys)))}  # each image once
        known = self._answers.find(list(first))
        for row in known.values():
            self._check_known(len(row))
        todo = [
            row for key, row in sorted(first.items(), key=lambda item: item[1]) if key not in known
        ]
        self._asked += len(keys)
        self._cached += len(keys) - len(todo)
        lost: dict[bytes, str] = {}
        for start in range(0, len(todo), self._max_batch):
            rows = todo[start : start + self._max_batch]
            why = self._calls(plain[rows], partial(self._take, [keys[r] for r in rows], known))
            lost |= {keys[rows[place]]: reason for place, reason in why.items()}
        if not keys:
            return images.new_zeros((0, max(1, self._classes)))
        nothing = np.full(max(1, self._classes), np.nan)
        stacked = torch.from_numpy(np.stack([known.get(key, nothing) for key in keys]))
        logits = self._as_logits(stacked).to(images)
        reasons = {row: lost[key] for row, key in enumerate(keys) if key in lost}
        self._unanswered += len(reasons)
        if reasons:
            raise _no_answer(logits, reasons)
        return logits

    def _take(
        self, keys: Sequence[bytes], known: dict[bytes, Row], answer: Any, places: Sequence[int]
    ) -> dict[int, str]:
        """Cache the answers for some images; returns which have scores that are not finite."""
        scores = self._read(answer, len(places))
        fit = [bool(np.isfinite(row).all()) for row in scores]
        if not any(fit):
            raise self._bad(f"gave a score that is not finite for image 0 of {len(fit)}")
        new = {
            keys[place]: row for place, row, good in zip(places, scores, fit, strict=True) if good
        }
        self._classes = scores.shape[1]
        self._answers.add(new)
        known |= new
        reason = "a score that is not finite"
        return {place: reason for place, good in zip(places, fit, strict=True) if not good}

    def _read(self, answer: Any, count: int) -> Row:
        """The answer as rows of scores; raises ``BadAnswer`` where it has the wrong form."""
        try:
            scores = torch.as_tensor(answer).detach().cpu().double().numpy()
        except (TypeError, ValueError, RuntimeError):
            raise self._bad(f"gave a {type(answer).__name__} that is not made of numbers") from None
        if scores.ndim == 1 and self._labels_only:
            scores = self._one_hot(scores)
        if scores.ndim != 2 or len(scores) != count:
            wanted = "a class number or a row" if self._labels_only else "a row of scores"
            raise self._bad(f"must give {wanted} for each of {count} images, got {scores.shape}")
        low, high = np.nanmin(scores, initial=0), np.nanmax(scores, initial=1)
        if self._probabilities and (low < 0 or high > 1):
            raise self._bad(f"gave probabilities from {low:.3g} to {high:.3g}")
        if scores.shape[1] != (self._classes or scores.shape[1]):
            raise self._bad(
                f"gave {scores.shape[1]} scores per image, where there are {self._classes} classes"
            )
        return scores

    def _one_hot(self, numbers: Row) -> Row:
        if not self._classes:
            raise BadInput(
                f"{self._calls.name} answers with class numbers; "
                "score_model(classes=...) must say what classes there are"
            )
        whole = np.nan_to_num(numbers, nan=-1).astype(np.int64)
        if (whole != numbers).any() or (whole < 0).any() or (whole >= self._classes).any():
            raise self._bad(f"must give class numbers from 0 to {self._classes - 1}")
        return np.eye(self._classes)[whole]

    def _check_known(self, count: int) -> None:
        if count != (self._classes or count):
            raise BadInput(
                f"the cache of {self._calls.name} has {count} scores per image, where there are "
                f"{self._classes} classes; give score_model another version, or another cache"
            )
        self._classes = count

    def _as_logits(self, scores: Tensor) -> Tensor:
        if self._labels_only:
            top = torch.nn.functional.one_hot(scores.argmax(dim=1), scores.shape[1])
            return torch.where(scores.isnan().any(dim=1, keepdim=True), torch.nan, top)
        return scores.clamp_min(_TINY).log() if self._probabilities else scores

    def _bad(self, what: str) -> BadAnswer:
        return BadAnswer(f"{self._calls.name} {what}")


def _no_answer(logits: Logits, reasons: dict[int, str]) -> NoAnswer:
    """The error with all answers, and the reasons for the missing ones."""
    more = f", and for {len(reasons) - 1} images more" if len(reasons) > 1 else ""
    return NoAnswer(
        f"{next(iter(reasons.values()))}{more}; "
        "what it answered before is kept where there is a cache",
        logits=logits,
        reasons=reasons,
    )
