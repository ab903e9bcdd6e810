"""The images that a network is trained and tested on, and its card without facts.

Sets are named as for ``load_subset``. A set with two splits is trained on one and tested on the
other. The brackets behind its name choose training images; a choice of classes also applies to the
test split. Where there is no test split, a fifth of the images is drawn and held out. No test image
is trained on.

One ``.safetensors`` file may also hold all four of ``train_images``, ``train_labels``,
``test_images`` and ``test_labels`` (8-bit, batch x channel x height x width, and integers), with
``name`` and ``classes`` (a JSON list) in its metadata.
"""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.data.select import apply_step, load_subset
from pinprick.data.sets.tensors import check_tensors
from pinprick.data.subset import Draw, OfClass, Subset, describe, parse
from pinprick.errors import BadInput
from pinprick.json_text import read_json
from pinprick.train.splits import has_splits, with_classes, without
from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import NETS

_TENSORS = ("train_images", "train_labels", "test_images", "test_labels")
_CROP = 0.875  # side of the crop over the short side that a picture is brought to
_PICTURE = 224  # pixels, where nothing says another size
_HELD_OUT = 5  # one image in so many is a test image
Statistics = tuple[tuple[float, ...] | None, tuple[float, ...] | None]

STATISTICS: dict[str, Statistics] = {
    "mnist": (None, None),
    "fashion_mnist": (None, None),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
_PHOTOGRAPHS: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True, eq=False)
class Material:
    """Training and test images of one set.

    Attributes:
        name: Name of the set, which presets go by.
        train, test: Its two splits.
        train_words, test_words: Which images these are, in the words of ``load_subset``.
        remark: Which images were held out or left out; empty if none.
    """

    name: str
    train: Dataset
    test: Dataset
    train_words: str = ""
    test_words: str = ""
    remark: str = ""

    def __post_init__(self) -> None:
        for part in (self.train, self.test):
            if not len(part):
                raise BadInput(f"{part.source} holds no images")
        if self.train.classes != self.test.classes:
            raise BadInput(
                f"{self.train.source} and {self.test.source} have different classes: "
                f"{len(self.train.classes)} and {len(self.test.classes)}"
            )
        if self.train.pixels is not None and self.test.pixels is not None:
            first, second = self.train.pixels.shape[1:], self.test.pixels.shape[1:]
            if first != second:
                raise BadInput(
                    f"images are {tuple(first)} in {self.train.source} "
                    f"and {tuple(second)} in {self.test.source}"
                )

    def card(self, net: str, size: int | None = None) -> ModelCard:
        """The card of a network for these images, still without facts.

        Args:
            net: Name of the network.
            size: Side of the square that picture files are resized to; None for the network's.
        """
        design, pixels = NETS.get(net), self.train.pixels
        if pixels is None:
            height, width = (size, size) if size else design.size if design else (_PICTURE,) * 2
            channels, resize = 3, round(max(height, width) / _CROP)
        else:
            channels, height, width = pixels.shape[1:]
            resize = None
        shape = f"{channels} x {height} x {width}"
        if design is not None and design.channels != channels:
            raise BadInput(
                f"{net} takes pictures with {design.channels} channels; {self.name} has {shape}"
            )
        if design is not None and design.fixed and design.size != (height, width):
            raise BadInput(
                f"{net} takes pictures of {design.size[0]} x {design.size[1]}; "
                f"{self.name} has {shape}"
            )
        mean, std = self.statistics()
        return ModelCard(
            net=net,
            classes=self.train.classes,
            mean=mean,
            std=std,
            size=(height, width),
            channels=channels,
            resize=resize,
        )

    def statistics(self) -> Statistics:
        """Mean and std of each channel: the usual ones, or those of the training images."""
        if self.name in STATISTICS:
            return STATISTICS[self.name]
        if self.train.pixels is None:
            return _PHOTOGRAPHS
        values = self.train.pixels[:: max(1, len(self.train) // 10_000)].double() / 255
        std, mean = torch.std_mean(values, dim=(0, 2, 3))
        return _rounded(mean), _rounded(std.clamp(min=0.01))


def read_material(
    name: str, *, root: str | Path | None = None, test: str | None = None
) -> Material:
    """Training and test images of the set, or of some of it, that ``name`` says.

    Args:
        name: As for ``load_subset``, or the path of a ``.safetensors`` file with both splits.
        root: The folder that sets are kept in.
        test: Which images to test on, as for ``load_subset``; by default the set's test split,
            and where it has none, a fifth of the images, held out of training.
    """
    if not name.endswith(".safetensors") or ":" in name:
        return _read_set(name, root=root, test=test)
    material = read_tensor_file(Path(name).expanduser())
    if test is None:
        return material
    train, held = with_classes(material.train, load_subset(test, root=root))
    return replace(material, train=train, test=held, test_words=describe(parse(test)))


def _read_set(text: str, *, root: str | Path | None, test: str | None) -> Material:
    """The training images that ``text`` names, and the test images: of ``test``, or by the rule."""
    chosen = parse(text, split="")
    own_test = has_splits(chosen.name) and chosen.split in ("", "train")
    chosen = replace(chosen, split=chosen.split or ("train" if own_test else "test"))
    rest = found = load_subset(chosen, root=root)
    if test is not None:
        tested = parse(test)
        held = load_subset(tested, root=root)
        rest = without(found, held)
    elif own_test:
        classes = tuple(step for step in chosen.steps if isinstance(step, OfClass))
        tested = Subset(chosen.name, "test", classes)
        held = load_subset(tested, root=root)
    else:
        if len(found) < 2:
            raise BadInput(f"a single image cannot be held out of {text}; name test images as well")
        draw = Draw(max(1, round(len(found) / _HELD_OUT)))
        tested = replace(chosen, steps=(*chosen.steps, draw))
        held = apply_step(found, draw)
        rest = without(found, held)
    train, held = with_classes(rest, held, _whole(chosen, found, root))
    words, test_words, remark = describe(chosen), describe(tested), ""
    if count := len(found) - len(train):
        what = "held out as test images" if test is None else "test images, and are not trained on"
        words = f"{words} without {test_words}"
        remark = f"{count} of {len(found)} images are {what}: {test or test_words}"
    return Material(chosen.name, train, held, words, test_words, remark)


def _whole(chosen: Subset, found: Dataset, root: str | Path | None) -> Dataset:
    """The split that the images were chosen from, where its highest label must be known."""
    if found.classes or not chosen.steps:
        return found
    return load_subset(replace(chosen, steps=()), root=root)


def read_tensor_file(path: Path) -> Material:
    try:
        with safe_open(path, framework="pt") as file:
            missing = [key for key in _TENSORS if key not in file.keys()]  # noqa: SIM118
            if missing:
                raise BadInput(f"{path} lacks the tensors {', '.join(missing)}")
            tensors = {key: file.get_tensor(key) for key in _TENSORS}
            metadata = file.metadata() or {}
    except FileNotFoundError:
        raise BadInput(f"there is no file {path} to train on") from None
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is no safetensors file, or half of one ({error})") from None
    name = metadata.get("name", path.stem)
    classes = _read_classes(metadata.get("classes", ""), path)
    parts = []
    for split in ("train", "test"):
        images, labels = tensors[f"{split}_images"], tensors[f"{split}_labels"]
        check_tensors(images, labels, path, f"{split}_")
        parts.append(Dataset.in_memory(name, classes, images, labels.long(), f"{name}/{split}"))
    return Material(name, *with_classes(*parts))


def _read_classes(text: str, path: Path) -> tuple[str, ...]:
    """Names from a JSON list, or between commas."""
    if not text.startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    names = read_json(text, f"the list of classes in the metadata of {path}", finite=True)
    return tuple(str(name) for name in names)


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values.tolist())


def fingerprint(part: Dataset) -> str:
    """A short text that differs when the images do: pixels, or names and sizes of files."""
    check = zlib.crc32(part.labels.numpy().tobytes())
    if part.pixels is not None:
        check = zlib.crc32(part.pixels.contiguous().numpy().data, check)
    else:
        files = "\n".join(f"{file.name} {_file_size(file)}" for file in part.files)
        check = zlib.crc32(files.encode("utf-8", "surrogateescape"), check)
    return f"{len(part)} images, {check:08x}"


def _file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1  # reading it raises the error
