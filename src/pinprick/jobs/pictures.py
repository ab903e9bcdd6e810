"""What a job works on: pictures and datasets, read in groups, with one record per picture."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.data.match_labels import check_shape, match_labels
from pinprick.data.pictures import Photo, PictureRecord, Unreadable, read_pictures
from pinprick.data.select import load_subset
from pinprick.data.sets.photographs import read_photographs
from pinprick.data.subset import Range, Subset, describe, parse
from pinprick.errors import BadInput
from pinprick.jobs.labels import (
    clean_logits,
    find_targets,
    label_pictures,
    rows_to_attack,
    with_label,
)
from pinprick.jobs.masks import read_masks
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.types import Images, Labels, Logits

_ELEMENTS = 128 * 3 * 224 * 224  # of images that are read at a time
_NAMED = 3  # most files that a line names


@dataclass(frozen=True, kw_only=True)
class PictureSource:
    """Which pictures to work on: files, or images of a dataset.

    Attributes:
        paths: Picture files and folders of them. If empty and without ``data``: the photographs of
            the demo.
        data: Images of a dataset, as in "cifar10/test[0:100]".
        root: The folder that datasets are kept in; None for the default.
        limit: Use only the first ``limit`` images of ``data``.
        labels: The true class of each picture, or one for all, by number or name. If empty: the
            known class, or the clean prediction of the model. Images of ``data`` have labels.
        target: The target class by number or name, "least-likely", or "given" by ``data``.
        mask: Where pixels may change, as for ``read_masks``; None for everywhere.
        by_number: Whether labels of ``data`` are the model's class numbers, whatever the names.
    """

    paths: Sequence[Path] = ()
    data: str | None = None
    root: Path | None = None
    limit: int | None = None
    labels: Sequence[str] = ()
    target: str | None = None
    mask: Path | None = None
    by_number: bool = False

    def __post_init__(self) -> None:
        if self.data is None and self.limit is not None:
            raise BadInput("--limit is for --data; leave pictures out instead")
        if self.data is not None and self.paths:
            raise BadInput("give pictures, or a dataset with --data, but not both")
        if self.data is None and self.by_number:
            raise BadInput("--labels-by-number is for --data; --label takes numbers and names")
        if self.data is not None and self.labels:
            raise BadInput("images of --data have their labels; leave --label out")


@dataclass(frozen=True, eq=False)
class ChosenData:
    """Images of a dataset, and the subset that names exactly these."""

    images: Dataset
    subset: Subset

    @property
    def description(self) -> str:
        """The text that names exactly these images."""
        return describe(self.subset)

    def first(self, count: int) -> "ChosenData":
        """The first ``count`` of these images."""
        if count >= len(self.images):
            return self
        name, split, steps = self.subset.name, self.subset.split, self.subset.steps
        return ChosenData(self.images[:count], Subset(name, split, (*steps, Range(0, count))))

    def up_to(self, index: int) -> "ChosenData":
        """These images up to the one that has this index in the dataset."""
        return self.first(int((self.images.indices == index).nonzero()[-1]) + 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class PictureGroup:
    """Pictures that were read together, as the model takes them.

    Attributes:
        records: What is known about each picture.
        images: The pictures in [0, 1].
        logits: The model's answers for them.
        labels: The true class of each.
        targets: The target class of each; None without targets.
        allowed: Where the pixels of each may change; None for everywhere.
        ids: The number that the random stream of each belongs to.
        unreadable: Files that cannot be read, and pictures that a remote model did not answer for.
    """

    records: tuple[PictureRecord, ...]
    images: Images
    logits: Logits
    labels: Labels
    targets: Labels | None
    allowed: Bool[Tensor, "batch 1 height width"] | None
    ids: Tensor
    unreadable: tuple[Unreadable, ...]


def choose_data(source: PictureSource) -> ChosenData | None:
    """The images of the dataset that ``source`` names; None if it names pictures."""
    if source.data is None:
        return None
    subset = parse(source.data)
    chosen = ChosenData(load_subset(subset, root=source.root), subset)
    return chosen if source.limit is None else chosen.first(source.limit)


def read_groups(
    source: PictureSource, chosen: ChosenData | None, model: Classifier, progress: Progress
) -> tuple[Iterator[PictureGroup], int]:
    """The pictures in groups that fit into memory, and how many pictures there are."""
    if chosen is not None:
        return _data_groups(chosen.images, source, model, progress), len(chosen.images)
    group = _file_group(source, model, progress)
    return iter([group]), len(group.records)


def read_all(
    source: PictureSource, chosen: ChosenData | None, model: Classifier, progress: Progress
) -> PictureGroup:
    """All pictures as one group, where they are few."""
    groups = list(read_groups(source, chosen, model, progress)[0])
    full = [group for group in groups if group.records]
    targets = [group.targets for group in full if group.targets is not None]
    allowed = [group.allowed for group in full if group.allowed is not None]
    return PictureGroup(
        records=tuple(record for group in full for record in group.records),
        images=torch.cat([group.images for group in full]),
        logits=torch.cat([group.logits for group in full]),
        labels=torch.cat([group.labels for group in full]),
        targets=torch.cat(targets) if targets else None,
        allowed=torch.cat(allowed) if allowed else None,
        ids=torch.cat([group.ids for group in full]),
        unreadable=tuple(file for group in groups for file in group.unreadable),
    )


def _file_group(source: PictureSource, model: Classifier, progress: Progress) -> PictureGroup:
    """The picture files, or the photographs of the demo."""
    photos, unreadable = read_pictures(source.paths) if source.paths else (read_photographs(), [])
    _warn(unreadable, progress)
    if not photos:
        raise BadInput(f"there is no picture to work on{_class_folders(source.paths)}")
    records = [photo.record for photo in photos]
    _tell(((each.path, each.remark) for each in records if each.remark), progress.remark)
    images = _prepare(photos, model)
    logits, rows, unanswered = clean_logits(model, images, records)
    _warn(unanswered, progress)
    records = label_pictures([records[row] for row in rows.tolist()], model, logits, source.labels)
    kept = rows_to_attack(source.target, records, model, logits.shape[1])
    _tell_skipped(len(records) - len(kept), len(kept), source, progress)
    rows, logits, records = rows[kept], logits[kept], [records[row] for row in kept.tolist()]
    labels = torch.tensor([record.label for record in records], dtype=torch.long)
    return PictureGroup(
        records=tuple(records),
        images=images[rows],
        logits=logits,
        labels=labels,
        targets=find_targets(source.target, model, logits, labels),
        allowed=_allowed(source, records, images[rows], model),
        ids=rows,
        unreadable=(*unreadable, *unanswered),
    )


def _data_groups(
    data: Dataset, source: PictureSource, model: Classifier, progress: Progress
) -> Iterator[PictureGroup]:
    """The images of a dataset, with labels in the model's classes."""
    check_shape(data, model)
    classes, target = None, source.target
    left_out: list[Unreadable] = []  # since the last group
    skipped = attacked = 0
    for part in _parts(data, model):
        names, images, kept, unreadable = _read_part(part, model)
        _warn(unreadable, progress)
        left_out += unreadable
        if not names:
            continue
        logits, rows, unanswered = clean_logits(model, images, names, proven=classes is not None)
        _warn(unanswered, progress)
        if classes is None:
            classes = logits.shape[1]
            if remark := match_labels(data, model, classes, by_number=source.by_number)[1]:
                progress.remark(remark)
        some = match_labels(part[kept[rows]], model, classes, by_number=source.by_number)[0]
        records = [
            with_label(names[row], label, "data", model)
            for row, label in zip(rows.tolist(), some.labels.tolist(), strict=True)
        ]
        if target == "given" and some.targets is None:
            raise BadInput(f"{some.name} gives no targets; name a class, or least-likely")
        others = rows_to_attack(target, records, model, classes)
        skipped, attacked = skipped + len(records) - len(others), attacked + len(others)
        some, logits, rows = some[others], logits[others], rows[others]
        records = [records[row] for row in others.tolist()]
        left_out += unanswered
        if not records:
            continue
        yield PictureGroup(
            records=tuple(records),
            images=images[rows],
            logits=logits,
            labels=some.labels,
            targets=some.targets
            if target == "given"
            else find_targets(target, model, logits, some.labels),
            allowed=_allowed(source, records, images[rows], model),
            ids=some.indices,
            unreadable=tuple(left_out),
        )
        left_out = []
    if classes is None:
        raise BadInput(f"there is no picture to work on in {data.source}")
    _tell_skipped(skipped, attacked, source, progress)
    if left_out:
        none = torch.empty(0, dtype=torch.long)
        yield PictureGroup(
            records=(),
            images=torch.empty(0, 3, 1, 1),
            logits=torch.empty(0, classes),
            labels=none,
            targets=None,
            allowed=None,
            ids=none,
            unreadable=tuple(left_out),
        )


def _tell_skipped(skipped: int, attacked: int, source: PictureSource, progress: Progress) -> None:
    """Say how many pictures are of the target class already; ``BadInput`` if all of them are."""
    if not skipped:
        return
    images = f"{skipped} image{'s' if skipped != 1 else ''}"
    if not attacked:
        raise BadInput(
            f"there is no image to attack: {images} labelled {source.target} already; "
            "a target must be another class"
        )
    progress.remark(f"skipped {images} labelled {source.target} already")


def _allowed(
    source: PictureSource, records: Sequence[PictureRecord], images: Images, model: Classifier
) -> Bool[Tensor, "batch 1 height width"] | None:
    return None if source.mask is None else read_masks(source.mask, records, images, model)


def _parts(data: Dataset, model: Classifier) -> Iterator[Dataset]:
    """The dataset in parts that fit into memory."""
    if data.pixels is not None:
        elements = data.pixels.shape[1:].numel()
    else:
        height, width = model.size or (224, 224)
        elements = 3 * height * width
    size = max(1, _ELEMENTS // elements)
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _read_part(
    part: Dataset, model: Classifier
) -> tuple[list[PictureRecord], Tensor, Tensor, list[Unreadable]]:
    """Records and images of what can be read, their rows, and the files that cannot be read."""
    if part.pixels is not None:
        records = [_record(part, row) for row in range(len(part))]
        return records, part.images(), torch.arange(len(part)), []
    kept, images, unreadable = [], [], []
    for row in range(len(part)):
        try:
            images.append(part[row : row + 1].images(model))
            kept.append(row)
        except BadInput as error:
            path = part.files[row]
            unreadable.append(Unreadable(path, str(error).removeprefix(f"{path}: ")))
    rows = torch.tensor(kept, dtype=torch.long)
    if len({image.shape for image in images}) > 1:
        part[rows].images(model)  # raises, and names the one of another size
    records = [_record(part, row) for row in kept]
    return records, torch.cat(images) if images else torch.empty(0), rows, unreadable


def _record(part: Dataset, row: int) -> PictureRecord:
    """Image 17 of cifar10/test is named cifar10-test-17; a file cat.png at index 17, 17-cat."""
    index = int(part.indices[row])
    if part.files:
        return PictureRecord(f"{index}-{part.files[row].stem}", part.files[row])
    stem = Path(part.source.partition(":")[2]).stem if ":" in part.source else part.source
    return PictureRecord(f"{stem.replace('/', '-')}-{index}", Path(f"{part.source}[{index}]"))


def _class_folders(paths: Sequence[Path]) -> str:
    """Advice for folders that hold no pictures but other folders."""
    folders = [
        path for path in paths if path.is_dir() and any(each.is_dir() for each in path.iterdir())
    ]
    return f"; class folders are read by --data folder:{folders[0]}" if folders else ""


def _prepare(photos: Sequence[Photo], model: Classifier) -> Images:
    """All pictures in one tensor, as the model takes them."""
    images = [model.prepare(photo.image) for photo in photos]
    for photo, image in zip(photos, images, strict=True):
        if image.shape != images[0].shape:
            raise BadInput(
                f"{model.name} leaves pictures at their own size, but {photos[0].record.name} is "
                f"{tuple(images[0].shape)} and {photo.record.name} {tuple(image.shape)}; "
                "give pictures of one size, or Classifier(prepare=...)"
            )
    return torch.stack(images)


def _warn(unreadable: Sequence[Unreadable], progress: Progress) -> None:
    _tell(((file.path, file.reason) for file in unreadable), progress.warn)


def _tell(lines: Iterable[tuple[Path, str]], say: Callable[[str], None]) -> None:
    """Say each text once, with the first paths that it is about and the number of others."""
    paths: dict[str, list[Path]] = {}
    for path, text in lines:
        paths.setdefault(text, []).append(path)
    for text, about in paths.items():
        names, left = ", ".join(map(str, about[:_NAMED])), len(about) - _NAMED
        say(f"{names}{f' and {left} more' if left > 0 else ''}: {text}")


def list_unreadable(unreadable: Sequence[Unreadable]) -> list[dict[str, str]]:
    """As JSON can hold it."""
    return [{"path": str(file.path), "reason": file.reason} for file in unreadable]
