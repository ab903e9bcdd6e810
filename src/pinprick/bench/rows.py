"""The rows of a benchmark: one per image, with the perturbation, so that anyone can verify them.

A perturbation is the flat indices of the changed elements and their new values. With the clean
image it gives the adversarial image bit for bit. A perturbation of more than a quarter of the
elements, or of more than 1000, is dense. It is saved only where it is asked for.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pinprick.bench.cell_file import NO_VICTIMS
from pinprick.bench.extra import needed
from pinprick.bench.row_schema import COUNTS, ROWS
from pinprick.errors import BadInput
from pinprick.result import AttackResult
from pinprick.trace import Trace
from pinprick.types import Images, Labels, Logits, Mask, Picture

if TYPE_CHECKING:
    from pyarrow import Table

pa: Any = needed("pyarrow")
pc: Any = needed("pyarrow.compute")

_DENSE = 4  # a perturbation is dense where more than one of so many elements changed,
_MANY = 1000  # or more than so many in all


def to_table(
    result: AttackResult,
    cell_key: str,
    *,
    victims: Sequence[Labels] = (),
    victims_clean: Sequence[Labels] = (),
    victim_error: str = "",
    dense: bool = False,
) -> "Table":
    """The rows of one batch, or of several that were joined.

    Args:
        result: The result of the attack; its ``ids`` are the indices in the subset.
        cell_key: The key of the cell.
        victims: Per victim, its predictions for the adversarial images.
        victims_clean: Per victim, its predictions for the clean images.
        victim_error: The victim that failed and its error; there are no predictions then.
        dense: Whether to save dense perturbations, too.
    """
    result = result.to("cpu")
    note = f"{NO_VICTIMS}{victim_error}" if victim_error else ""
    count, success = len(result), result.success
    goal = result.goal
    finite = result.adversarial_logits.isfinite().all(dim=1)
    firsts, steps = _steps(result.trace, count)
    sizes = change_sizes(result.images, result.adversarial)
    positions, values = _perturbations(result.images, result.adversarial, dense=dense)
    columns: dict[str, Any] = {
        "cell": [cell_key] * count,
        "index": result.ids.tolist(),
        "label": goal.labels.tolist(),
        "target": [None] * count if goal.targets is None else goal.targets.tolist(),
        "correct": result.correct.tolist(),
        "skipped": result.skipped.tolist(),
        "success": success.tolist(),
        "success_8bit": result.survives_8bit.tolist(),
        **{name: _or_null(size, success) for name, size in sizes.items()},
        "margin": _or_null(goal.margin(result.adversarial_logits.double()), finite),
        "noise": [None] * count if result.noise is None else result.noise.tolist(),
        "forwards": result.forwards.tolist(),
        "backwards": result.backwards.tolist(),
        "first_success_forwards": [step and step["forwards"] for step in firsts],
        "first_success_backwards": [step and step["backwards"] for step in firsts],
        "steps": steps,
        "seconds": [result.seconds / max(1, count)] * count,
        "victims": [None] * count if victim_error else _per_image(victims, count),
        "victims_clean": [None] * count if victim_error else _per_image(victims_clean, count),
        "remark": ["; ".join(filter(None, (str(one), note))) for one in result.remarks],
        "error": [""] * count,
        "positions": positions,
        "values": values,
        "shape": [list(result.images.shape[1:])] * count,
    }
    for name, logits in (
        ("clean", result.clean_logits),
        ("adversarial", result.adversarial_logits),
    ):
        columns[f"{name}_class"], columns[f"{name}_confidence"] = _predictions(logits)
    return pa.table(columns, schema=ROWS)


def error_table(cell_key: str, indices: Sequence[int], error: str) -> "Table":
    """The rows of images that could not be attacked: the error and nothing else."""
    count = len(indices)
    columns = {name: pa.nulls(count, ROWS.field(name).type) for name in ROWS.names}
    columns |= {"cell": [cell_key] * count, "index": indices, "error": [error] * count}
    return pa.table(columns, schema=ROWS)


def rebuild(row: Mapping[str, Any], clean_image: Picture) -> Picture:
    """The adversarial image of one row, bit for bit."""
    table = pa.Table.from_pylist([dict(row)], schema=ROWS)
    images, rebuilt = rebuild_images(table, clean_image.unsqueeze(0))
    if not rebuilt.all():
        raise BadInput(
            f"row {row['index']} of cell {row['cell']} has no perturbation that fits the image; "
            "dense ones are saved on demand"
        )
    return images[0]


def rebuild_images(table: "Table", images: Images) -> tuple[Images, Mask]:
    """The adversarial images of all rows, and which of them could be rebuilt.

    A row without a perturbation keeps its clean image. So does one whose perturbation does not fit:
    another shape, an index outside the image, a value outside [0, 1].
    """
    adv = images.cpu().clone(memory_format=torch.contiguous_format)
    shape, elements = np.array(images.shape[1:]), images.shape[1:].numel()
    at, values, shapes = (
        table.column(name).combine_chunks() for name in ("positions", "values", "shape")
    )
    lengths = _lengths(at)
    fits = (lengths >= 0) & (_lengths(values) == lengths) & (_lengths(shapes) == len(shape))
    given = shapes.filter(pa.array(fits)).flatten().to_numpy(zero_copy_only=False)
    fits[fits] = (given.reshape(-1, len(shape)) == shape).all(axis=1)
    at, values = at.filter(pa.array(fits)), values.filter(pa.array(fits))
    owner = np.repeat(np.flatnonzero(fits), lengths[fits])
    flat_at, flat_values = at.flatten().to_numpy(), values.flatten().to_numpy()
    sound = (flat_at >= 0) & (flat_at < elements) & (flat_values >= 0) & (flat_values <= 1)
    fits[owner[~sound]] = False
    use = fits[owner]
    adv.view(-1).numpy()[owner[use] * elements + flat_at[use]] = flat_values[use]
    return adv.to(images.device), torch.from_numpy(fits)


def _lengths(lists: Any) -> NDArray[np.int32]:
    """The number of values of each list; -1 for null."""
    found: NDArray[np.int32] = pc.fill_null(pc.list_value_length(lists), -1).to_numpy()
    return found


def change_sizes(images: Images, adv: Images) -> dict[str, Tensor]:
    """Counts and norms of the change of each image, by the names of their columns."""
    changed = adv != images
    delta = (adv - images).flatten(1).double().abs_()
    return {
        "pixels": changed.any(dim=1).flatten(1).sum(dim=1),
        "elements": changed.flatten(1).sum(dim=1),
        "l1": delta.sum(dim=1),
        "linf": delta.amax(dim=1),
        "l2": delta.square_().sum(dim=1).sqrt(),  # last, as it needs no further array
    }


def is_dense(changed: int, elements: int) -> bool:
    """Whether a perturbation of so many of the elements is saved only where it is asked for."""
    return changed * _DENSE > elements or changed > _MANY


def _or_null(values: Tensor, known: Mask) -> list[float | int | None]:
    pairs = zip(values.tolist(), known.tolist(), strict=True)
    return [value if given else None for value, given in pairs]


def _predictions(logits: Logits) -> tuple[list[Any], list[Any]]:
    """Classes and confidences; null where the logits are not finite."""
    finite, top = logits.isfinite().all(dim=1), logits.argmax(dim=1)
    sure = torch.softmax(logits.double(), dim=1).gather(1, top.unsqueeze(1)).squeeze(1)
    return _or_null(top, finite), _or_null(sure, finite)


def _per_image(columns: Sequence[Labels], count: int) -> list[list[int]]:
    """One list per image of one column per victim."""
    return (
        torch.stack([column.cpu() for column in columns], 1).tolist() if columns else [[]] * count
    )


def _perturbations(images: Images, adv: Images, *, dense: bool) -> tuple[list[Any], list[Any]]:
    """Indices and new values per image; null where the perturbation is dense."""
    if images.dtype != torch.float32:
        raise BadInput(f"a benchmark saves float32 images, got {images.dtype}")
    old, new = images.flatten(1).contiguous(), adv.flatten(1).contiguous()
    changed = old.view(torch.int32) != new.view(torch.int32)  # bits: 0.0 and -0.0 differ
    positions: list[Any] = []
    values: list[Any] = []
    for mask, row, count in zip(changed, new, (old != new).sum(dim=1).tolist(), strict=True):
        at = mask.nonzero().squeeze(1)
        saved = dense or not is_dense(count, len(row))
        positions.append(at.int().numpy() if saved else None)
        values.append(row[at].numpy() if saved else None)
    return positions, values


def _steps(trace: Trace | None, count: int) -> tuple[list[Any], list[list[dict[str, int]]]]:
    """The first success per image, and the steps at which a count of changed units fell."""
    if trace is None:
        return [None] * count, [[] for _ in range(count)]
    columns = (getattr(trace, name).tolist() for name in COUNTS)
    entries = iter(zip(*columns, strict=True))
    steps: list[list[dict[str, int]]] = []
    for length in trace.steps.tolist():
        own: list[dict[str, int]] = []
        for _ in range(length):
            forwards, backwards, elements, pixels = next(entries)
            fewest = (own[-1]["elements"], own[-1]["pixels"]) if own else None
            if elements < float("inf") and (elements, pixels) != fewest:
                own.append(
                    dict(
                        zip(COUNTS, map(int, (forwards, backwards, elements, pixels)), strict=True)
                    )
                )
        steps.append(own)
    return [own[0] if own else None for own in steps], steps
