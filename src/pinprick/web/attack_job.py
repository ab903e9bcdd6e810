"""An attack on one picture: watched while it runs, then measured, its changed pixels listed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.attacks.card import Attack
from pinprick.data.classes import find_class
from pinprick.data.pictures import PictureRecord
from pinprick.errors import BadInput
from pinprick.goal import least_likely
from pinprick.jobs.attack import AttackedPicture, attack_document
from pinprick.jobs.attack_group import RunOptions
from pinprick.jobs.output import as_json
from pinprick.jobs.pictures import PictureSource
from pinprick.jobs.resume import describe_request
from pinprick.model import Classifier
from pinprick.report.row import make_rows, plain, predictions
from pinprick.result import AttackResult
from pinprick.run import attack_batches
from pinprick.threads import limited_threads
from pinprick.web.choices import build_chosen
from pinprick.web.job_queue import Job, JobStopped
from pinprick.web.live_trace import LiveTrace
from pinprick.web.uploads import number_field, read_mask, text_field
from pinprick.web.workbench import Workbench, logits_of, scores

SWITCHES = 2000  # changed pixels that can be switched one by one
_MASK_CHARACTERS = 700_000  # base64 of one bit per pixel of the largest picture
_MOST_PASSES = 1_000_000
_PAINTED = Path("painted on the page")  # in place of the file of a mask


@dataclass(frozen=True)
class AttackRequest:
    """What the page asked for, checked as far as it can be without the model."""

    picture: str
    model: str
    attack: Attack
    effort: str
    target: str
    max_passes: int | None
    seed: int
    mask: str

    @classmethod
    def read(cls, fields: dict[str, Any], workbench: Workbench) -> "AttackRequest":
        picture, model = text_field(fields, "picture"), text_field(fields, "model")
        workbench.picture(picture)
        workbench.check_model(model)
        effort = text_field(fields, "effort")
        attack = build_chosen(text_field(fields, "attack"), effort, text_field(fields, "unit"))
        return cls(
            picture,
            model,
            attack,
            effort,
            text_field(fields, "target").strip(),
            number_field(fields, "max_passes", least=1, most=_MOST_PASSES),
            number_field(fields, "seed", least=0, most=2**31 - 1) or 0,
            text_field(fields, "mask", most=_MASK_CHARACTERS),
        )


class AttackJob(Job):
    """Attack a picture of the workbench.

    Attributes:
        request: What the page asked for.
        trace: The best so far; None before the run has started.
        result: What the referee measured; None before the end.
        result_json: What ``pinprick attack`` writes as result.json; empty before the end.
    """

    kind = "attack"

    def __init__(self, request: AttackRequest, workbench: Workbench) -> None:
        self._upload = workbench.picture(request.picture)
        super().__init__(f"{request.attack.card.title} on {request.model}: {self._upload.name}")
        self.request, self._workbench = request, workbench
        self.trace: LiveTrace | None = None
        self.result: AttackResult | None = None
        self.result_json = ""
        self._document: dict[str, Any] = {}
        self._changed: list[dict[str, Any]] = []
        self._where: Tensor | None = None  # row and column of each changed pixel

    def stop(self) -> None:
        super().stop()
        if self.trace is not None:
            self.trace.stopped = True

    def work(self) -> None:
        request, workbench = self.request, self._workbench
        prepared = workbench.prepare(request.picture, request.model, self._upload)
        model, images = workbench.load(request.model), prepared.images
        allowed = read_mask(request.mask, images.shape[2], images.shape[3])
        label, target = prepared.label, self._target(model)
        unit = request.attack.facts().unit or "pixels"
        self.trace = trace = LiveTrace(images, unit, workbench.queue.answer_questions)
        if self.stopping:  # asked for before there was a trace to tell
            raise JobStopped
        with limited_threads(workbench.threads(request.model, images)):
            (result,) = attack_batches(
                request.attack,
                model,
                images,
                [label],
                targets=None if target is None else [target],
                allowed=None if allowed is None else allowed.to(images.device),
                seed=request.seed,
                max_passes=request.max_passes,
                watch=trace,
            )
        trace.end(
            result.adversarial,
            result.adversarial_logits,
            result.goal,
            int(result.forwards),
            int(result.backwards),
        )
        self._document = self._describe(result, model)
        self._list_changed(result)
        self.result_json = self._result_json(result, model)
        self.result = result

    def document(self) -> dict[str, Any]:
        request, trace = self.request, self.trace
        return {
            **self.summary(),
            "request": {
                "picture": request.picture,
                "model": request.model,
                "attack": request.attack.card.name,
                "effort": request.effort,
                "unit": request.attack.facts().unit or "pixels",
                "target": request.target,
                "max_passes": request.max_passes,
                "mask": request.mask,
            },
            "seconds": self.seconds,
            "steps": [] if trace is None else [step.plain() for step in trace.steps],
            "size": None if trace is None else list(trace.clean.shape),
            "forwards": 0 if trace is None else trace.forwards,
            "backwards": 0 if trace is None else trace.backwards,
            "outcome": self._document,
            "changed": self._changed,
            "switchable": bool(self._changed),
        }

    def finished(self) -> AttackResult:
        """The result; ``BadInput`` where there is none yet."""
        if self.result is None:
            raise BadInput("the attack has no result yet")
        return self.result

    def step_scores(self, number: int) -> dict[str, Any]:
        """What the model said of the image of a step; in the thread of the queue."""
        step = None if self.trace is None else self.trace.step(number)
        if step is None:
            raise BadInput("there is no such step")
        shown = [] if self.result is None else self._shown(self.result)
        return scores(step.logits.unsqueeze(0), self._workbench.load(self.request.model), shown)

    def switch_off(self, off: list[int]) -> dict[str, Any]:
        """What the model says with some changed pixels restored; in the thread of the queue."""
        result = self.finished()
        if self._where is None or any(number >= len(self._where) for number in off):
            raise BadInput("there is no such changed pixel")
        model = self._workbench.load(self.request.model)
        images = result.adversarial.clone()
        rows, columns = self._where[torch.tensor(off, dtype=torch.long)].unbind(dim=1)
        images[:, :, rows, columns] = result.images[:, :, rows, columns]
        logits = logits_of(model, images)
        return {
            **scores(logits, model, self._shown(result)),
            "margin": float(result.goal.margin(logits)),
            "fools": bool(result.goal.met(logits)),
        }

    def _target(self, model: Classifier) -> int | None:
        """The target class; None without one."""
        text = self.request.target
        if not text:
            return None
        logits = self._workbench.prepare(
            self.request.picture, self.request.model, self._upload
        ).logits
        if text == "least-likely":
            return int(least_likely(logits, logits.argmax(dim=1)))
        target = find_class(text, model.classes, count=logits.shape[1], owner=model.name)
        if target == int(logits.argmax()):
            raise BadInput(f"the picture is taken for {model.class_name(target)} already")
        return target

    def _shown(self, result: AttackResult) -> list[int]:
        """Classes whose scores are always shown: the label, and what it was taken for."""
        targets = result.goal.targets
        rival = result.adversarial_logits.argmax() if targets is None else targets[0]
        return [int(result.goal.labels[0]), int(rival)]

    def _describe(self, result: AttackResult, model: Classifier) -> dict[str, Any]:
        row = make_rows(result, model)[0]
        shown = self._shown(result)
        return {
            **plain(row),
            "before": scores(result.clean_logits, model, shown),
            "after": scores(result.adversarial_logits, model, shown),
        }

    def _list_changed(self, result: AttackResult) -> None:
        """List the changed pixels, where they are few enough to be switched one by one."""
        differs = (result.adversarial != result.images)[0].any(dim=0)
        if not 0 < int(differs.sum()) <= SWITCHES:
            return
        where = differs.nonzero()
        rows, columns = where.unbind(dim=1)
        before, after = (
            (255 * images[0][:, rows, columns].T).tolist()
            for images in (result.images, result.adversarial)
        )
        self._where = where
        self._changed = [
            {"row": row, "column": column, "before": old, "after": new}
            for (row, column), old, new in zip(where.tolist(), before, after, strict=True)
        ]

    @property
    def name(self) -> str:
        """The name of the picture, for the files made from it."""
        return Path(self._upload.name).stem

    def _result_json(self, result: AttackResult, model: Classifier) -> str:
        """What ``pinprick attack`` writes as result.json."""
        request = self.request
        record = PictureRecord(
            self.name,
            Path(self._upload.name),
            label=int(result.goal.labels[0]),
            label_from="model",
            label_name=model.class_name(int(result.goal.labels[0])),
        )
        picture = AttackedPicture(
            record=record,
            row=make_rows(result, model)[0],
            reread=predictions(result.rounded_logits, model)[0],
            reread_fools=bool(result.survives_8bit[0]),
            adversarial=Path(f"{self.name}-adversarial.png"),
            clean=Path(f"{self.name}-clean.png"),
            figure=None,
        )
        asked = describe_request(
            [request.attack],
            request.model,
            PictureSource(
                paths=(Path(self._upload.name),),
                target=request.target or None,
                mask=_PAINTED if request.mask else None,
            ),
            RunOptions(seed=request.seed, max_passes=request.max_passes),
            start=None,
        )
        whole = attack_document(model, None, asked, result, [picture], [], complete=True)
        return as_json(whole)
