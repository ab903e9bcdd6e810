"""Why the changed pixels fool the model: obscuring and leading groups, on maps of both classes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.explain.explain_result import Explained, explain_result
from pinprick.explain.maps.maps import Maps
from pinprick.model import Classifier
from pinprick.threads import limited_threads
from pinprick.web.attack_job import AttackJob
from pinprick.web.job_queue import Job, JobStopped
from pinprick.web.workbench import Workbench


class WhyJob(Job):
    """Explain the result of an attack as it is, without polishing it.

    Attributes:
        maps: 8-bit maps by name: "label" on the clean image, "rival" on the adversarial one.
    """

    kind = "why"

    def __init__(self, of: AttackJob, workbench: Workbench) -> None:
        result = of.finished()
        if not bool((result.adversarial != result.images).any()):
            raise BadInput("no pixel changed, so there is nothing to explain")
        super().__init__(f"why: {of.title}")
        self._of, self._workbench = of, workbench
        self.maps: dict[str, Tensor] = {}
        self._document: dict[str, Any] = {}

    def work(self) -> None:
        request, result = self._of.request, self._of.finished()
        model = self._workbench.load(request.model)
        threads = self._workbench.threads(request.model, result.images)
        with limited_threads(threads), self._between_passes(model):
            explained = explain_result(result, model, polished=False)
        self._document = _describe(explained, model)
        for name, maps in (("label", explained.true_maps), ("rival", explained.adversarial_maps)):
            if maps is not None:
                self.maps[name] = (maps.scaled[0].detach() * 255).round().byte().cpu().unsqueeze(0)

    def summary(self) -> dict[str, Any]:
        return {**super().summary(), "of": self._of.id}

    def document(self) -> dict[str, Any]:
        return {
            **self.summary(),
            "seconds": self.seconds,
            "maps": sorted(self.maps),
            **self._document,
        }

    @contextmanager
    def _between_passes(self, model: Classifier) -> Iterator[None]:
        """Before each pass, answer questions, and stop if that is asked."""
        inside = False

        def before_pass(*_: object) -> None:
            nonlocal inside
            if inside:  # a question makes passes of its own
                return
            inside = True
            self._workbench.queue.answer_questions()
            inside = False
            if self.stopping:
                raise JobStopped

        if not isinstance(model.net, nn.Module):
            yield
            return
        hook = model.net.register_forward_pre_hook(before_pass)
        try:
            yield
        finally:
            hook.remove()


def _describe(explained: Explained, model: Classifier) -> dict[str, Any]:
    """The explanation in what the page draws."""
    one = explained.explanations[0]
    maps: Maps | None = explained.true_maps
    return {
        "label_name": model.class_name(one.label),
        "rival_name": model.class_name(one.rival),
        "method": "" if maps is None else maps.method,
        "layer": "" if maps is None else maps.layer,
        "obscuring": one.obscuring,
        "leading": one.leading,
        "effects": one.method,
        "groups": [
            {
                "number": group.number,
                "pixels": group.pixels,
                "centre": group.centre,
                "label": group.shapley.label,
                "obscuring": group.shapley.obscuring,
                "leading": group.shapley.leading,
                "obscuring_error": group.shapley.obscuring_error,
                "leading_error": group.shapley.leading_error,
                "margin": group.shapley.margin,
            }
            for group in (one.groups[number] for number in one.order)
        ],
        "passes": [one.forwards, one.backwards],
    }
