"""The columns of a row: one row per image. Importing this does not import torch."""

from typing import Any

from pinprick.bench.extra import needed

pa: Any = needed("pyarrow")

COUNTS = ("forwards", "backwards", "elements", "pixels")
STEP = pa.struct([(name, pa.int64()) for name in COUNTS])
ROWS = pa.schema(
    [
        ("cell", pa.string()),  # the key of the cell
        ("index", pa.int64()),  # in the subset
        ("label", pa.int64()),
        ("target", pa.int64()),  # null for an untargeted goal
        ("clean_class", pa.int64()),  # predictions and confidences: null without finite logits
        ("adversarial_class", pa.int64()),
        ("correct", pa.bool_()),  # before the attack
        ("skipped", pa.bool_()),
        ("success", pa.bool_()),
        ("success_8bit", pa.bool_()),
        ("pixels", pa.int64()),  # counts and norms of the change: null where it failed
        ("elements", pa.int64()),
        ("l1", pa.float64()),
        ("l2", pa.float64()),
        ("linf", pa.float64()),
        ("clean_confidence", pa.float64()),
        ("adversarial_confidence", pa.float64()),
        ("margin", pa.float64()),  # of the adversarial image; below zero where it succeeded
        ("noise", pa.float64()),  # numerical noise of margins, null where it was not measured
        ("forwards", pa.int64()),
        ("backwards", pa.int64()),
        ("first_success_forwards", pa.int64()),  # null without success or without a trace
        ("first_success_backwards", pa.int64()),
        ("steps", pa.list_(STEP)),  # the fewest changes so far; empty without a trace
        ("seconds", pa.float64()),  # of the batch, divided by its images
        ("victims", pa.list_(pa.int64())),  # their predictions for the adversarial image
        ("victims_clean", pa.list_(pa.int64())),
        ("remark", pa.string()),
        ("error", pa.string()),  # empty if there was none; then all measured values are null
        ("positions", pa.list_(pa.int32())),  # the perturbation; null where it was not saved
        ("values", pa.list_(pa.float32())),
        ("shape", pa.list_(pa.int32())),  # channels, height, width
    ]
)
TIMES = ("seconds",)  # columns that differ from run to run
