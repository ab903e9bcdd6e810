"""The columns of a row: one row per image. Importing this does not import torch."""

from typing import Any

from pinprick.bench.extra import needed

pa: Any = needed("pyarrow")

COUNTS = ("forwards", "backwards", "elements", "pixels")
STEP = pa.struct([(name, pa.int64()) for name in COUNTS])
COLUMNS: dict[str, tuple[Any, str]] = {  # type and meaning
    "cell": (pa.string(), "Key of the cell."),
    "index": (pa.int64(), "Index of the image in the subset."),
    "label": (pa.int64(), "True class."),
    "target": (pa.int64(), "Target class; null for an untargeted goal."),
    "clean_class": (pa.int64(), "Prediction for the clean image; null without finite logits."),
    "adversarial_class": (
        pa.int64(),
        "Prediction for the adversarial image; null without finite logits.",
    ),
    "correct": (pa.bool_(), "Classified correctly before the attack."),
    "skipped": (pa.bool_(), "Not attacked, because the clean image meets the goal."),
    "success": (pa.bool_(), "The adversarial image meets the goal."),
    "success_8bit": (pa.bool_(), "It still does after rounding to 8-bit values."),
    "pixels": (pa.int64(), "Changed pixels; null where the attack failed."),
    "elements": (pa.int64(), "Changed elements; null where the attack failed."),
    "l1": (pa.float64(), "Sum of the absolute changes; null where the attack failed."),
    "l2": (pa.float64(), "Euclidean norm of the change; null where the attack failed."),
    "linf": (pa.float64(), "Largest absolute change; null where the attack failed."),
    "clean_confidence": (pa.float64(), "Softmax of the prediction for the clean image."),
    "adversarial_confidence": (
        pa.float64(),
        "Softmax of the prediction for the adversarial image.",
    ),
    "margin": (pa.float64(), "Margin of the adversarial image; below zero where it succeeded."),
    "noise": (pa.float64(), "Numerical noise of the margin; null where it was not measured."),
    "forwards": (pa.int64(), "Forward passes of the attack."),
    "backwards": (pa.int64(), "Backward passes of the attack."),
    "first_success_forwards": (
        pa.int64(),
        "Forward passes up to the first success; null without one, or without a trace.",
    ),
    "first_success_backwards": (
        pa.int64(),
        "Backward passes up to the first success; null without one, or without a trace.",
    ),
    "steps": (pa.list_(STEP), "The fewest changes so far against passes; empty without a trace."),
    "seconds": (pa.float64(), "Time of the batch, divided by its images."),
    "victims": (
        pa.list_(pa.int64()),
        "Predictions of the victims for the adversarial image; null where a victim failed.",
    ),
    "victims_clean": (
        pa.list_(pa.int64()),
        "Predictions of the victims for the clean image; null where a victim failed.",
    ),
    "remark": (
        pa.string(),
        "Why the attack failed, and why predictions of victims are missing; else empty.",
    ),
    "error": (
        pa.string(),
        "Error of attack or model, or empty. With one, all measured values are null.",
    ),
    "positions": (
        pa.list_(pa.int32()),
        "Flat indices of the changed elements; null where the perturbation was not saved.",
    ),
    "values": (pa.list_(pa.float32()), "Values of these elements in the adversarial image."),
    "shape": (pa.list_(pa.int32()), "Channels, height and width."),
}
ROWS = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
TIMES = ("seconds",)  # columns that differ from run to run
