"""What the server holds between requests: pictures, loaded models, the queue; all in memory."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pinprick.data.pictures import PictureRecord
from pinprick.errors import BadInput, UnknownName
from pinprick.jobs.device import load_on_device
from pinprick.jobs.labels import clean_logits
from pinprick.model import Classifier
from pinprick.report.row import predictions
from pinprick.threads import choose_threads
from pinprick.types import Images, Logits
from pinprick.web.job_queue import JobQueue
from pinprick.web.uploads import check_picture, decode_picture

PICTURES, MODELS, PREPARED = 12, 2, 8  # that are held at a time
_TOP = 5  # classes that are shown
_ELEMENTS = 3 * 2048 * 2048  # of a picture as a model sees it, at most


@dataclass(frozen=True)
class Upload:
    """A picture as it was sent: its bytes, its name, width and height."""

    data: bytes
    name: str
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A picture as a model sees it, a batch of one on the model's device, and its logits."""

    images: Images
    logits: Logits

    @property
    def label(self) -> int:
        return int(self.logits.argmax())


class Workbench:
    """Pictures, models and jobs of one server.

    Args:
        models: Names of the models that may be chosen.
        device: "cpu", "cuda:0" and so on, or "auto".
    """

    def __init__(self, models: Sequence[str], device: str = "auto") -> None:
        self.models, self.device = list(models), device
        self.queue = JobQueue()
        self._pictures: OrderedDict[str, Upload] = OrderedDict()
        self._loaded: OrderedDict[str, tuple[Classifier, list[int]]] = OrderedDict()
        self._prepared: OrderedDict[tuple[str, str], Prepared] = OrderedDict()

    def add_picture(self, data: bytes, name: str) -> str:
        """Take in an upload; its id. ``BadInput`` if it is no picture, or too large."""
        width, height = check_picture(data)
        number = secrets.token_hex(8)
        _remember(self._pictures, number, Upload(data, name, width, height), PICTURES)
        return number

    def picture(self, number: str) -> Upload:
        if number not in self._pictures:
            raise BadInput("there is no such picture any more; drop it again")
        return self._pictures[number]

    def check_model(self, name: str) -> None:
        """Raise ``UnknownName`` unless the model is one of the listed ones."""
        if name not in self.models:
            raise UnknownName("listed model", name, self.models)

    def load(self, name: str) -> Classifier:
        """A listed model on the device; in the thread of the queue only."""
        self.check_model(name)
        if name not in self._loaded:
            model = load_on_device(name, self.device)
            _remember(self._loaded, name, (model, []), MODELS)
        self._loaded.move_to_end(name)
        return self._loaded[name][0]

    def threads(self, name: str, images: Images) -> int:
        """The number of CPU threads that suits a loaded model, measured once."""
        model, known = self._loaded[name]
        if not known:
            known.append(choose_threads(model, images).count)
        return known[0]

    def prepare(self, picture: str, name: str, upload: Upload | None = None) -> Prepared:
        """A picture as a model sees it; in the thread of the queue only.

        Args:
            picture: The id of the picture.
            name: The model.
            upload: The picture itself, for a job that waited longer than pictures are held.
        """
        key = (picture, name)
        if key not in self._prepared:
            upload, model = upload or self.picture(picture), self.load(name)
            images = model.prepare(decode_picture(upload.data)).unsqueeze(0)
            if images.numel() > _ELEMENTS:
                raise BadInput(
                    f"{name} leaves pictures at their own size, and this one has "
                    f"{images.shape[2]} x {images.shape[3]} pixels; drop a smaller one"
                )
            record = PictureRecord(upload.name, path=Path(upload.name))
            logits, _, _ = clean_logits(model, images, [record])
            device = model.device or images.device
            _remember(self._prepared, key, Prepared(images.to(device), logits.to(device)), PREPARED)
        self._prepared.move_to_end(key)
        return self._prepared[key]


def logits_of(model: Classifier, images: Images) -> Logits:
    """One forward pass, for the page and not for an attack."""
    with model.frozen(), torch.no_grad():
        return model(images)


def scores(logits: Logits, model: Classifier, always: Sequence[int] = ()) -> dict[str, Any]:
    """The prediction, and logit and confidence of the top classes and of those ``always`` shown."""
    row = logits[0].double()
    shares = row.softmax(dim=0)
    top = row.topk(min(_TOP, len(row))).indices.tolist()
    classes = sorted(dict.fromkeys([*always, *top]), key=lambda index: -float(row[index]))
    prediction = predictions(logits, model)[0]
    return {
        "prediction": {"index": prediction.index, "name": prediction.name},
        "confidence": float(shares[prediction.index]),
        "classes": [
            {
                "index": index,
                "name": model.class_name(index),
                "logit": float(row[index]),
                "confidence": float(shares[index]),
            }
            for index in classes
        ],
    }


def _remember(shelf: "OrderedDict[Any, Any]", key: Any, value: Any, most: int) -> None:
    shelf[key] = value
    while len(shelf) > most:
        shelf.popitem(last=False)
