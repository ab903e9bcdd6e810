"""ImageNet in torchvision's layout, on small archives of the real format."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
import torch
from PIL import Image

from pinprick import BadInput, Classifier
from pinprick.data import load_data
from pinprick.data.classes import imagenet_classes, synset_numbers
from pinprick.data.match_labels import match_labels
from pinprick.data.registry import find_source

WNIDS = list(synset_numbers())


def jpeg(value: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (2, 2), (value, 0, 0)).save(file, "JPEG")
    return file.getvalue()


def pack(path: Path, files: dict[str, bytes]) -> str:
    with tarfile.open(path, "w") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A validation archive with one picture a class, in the reverse order of the classes."""
    from torchvision.datasets import imagenet

    home = tmp_path / "imagenet"
    home.mkdir()
    one = jpeg(9)
    name = str(imagenet.ARCHIVE_META["val"][0])
    md5 = pack(home / name, {f"ILSVRC2012_val_{i:08}.JPEG": one for i in range(1000)})
    monkeypatch.setitem(imagenet.ARCHIVE_META, "val", (name, md5))
    torch.save(({wnid: (wnid,) for wnid in WNIDS}, WNIDS[::-1]), home / imagenet.META_FILE)
    return home / name


def test_validation_images_are_unpacked_and_are_the_test_split(
    tmp_path: Path, archive: Path
) -> None:
    data = load_data("imagenet", root=tmp_path, download=True)
    assert (data.source, len(data)) == ("imagenet/test", 1000)
    assert data.files[0].name == "ILSVRC2012_val_00000999.JPEG"
    assert (data.classes[0], data.labels[:2].tolist()) == ("tench", [0, 1])
    again = load_data("imagenet", root=tmp_path / "imagenet")  # torchvision's own root
    assert [file.name for file in again.files] == [file.name for file in data.files]


def test_unpacking_that_was_cut_short_starts_again(tmp_path: Path, archive: Path) -> None:
    left = tmp_path / "imagenet" / ".val.part"
    left.mkdir()
    (left / "ILSVRC2012_val_00000001.JPEG").write_bytes(b"half")
    find_source("imagenet").get(tmp_path, None)
    assert not left.exists()
    assert len(load_data("imagenet", root=tmp_path)) == 1000


def test_a_split_that_is_not_whole_is_a_fault(tmp_path: Path, archive: Path) -> None:
    find_source("imagenet").get(tmp_path, None)
    (fault,) = find_source("imagenet").faults(tmp_path)
    assert fault.reason == "it holds 1000 pictures and not 50000"


def test_a_damaged_archive_is_named_and_nothing_unpacked(tmp_path: Path, archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(
        BadInput, match=r"ILSVRC2012_img_val\.tar is not present .* or is corrupted"
    ):
        load_data("imagenet", root=tmp_path, download=True)
    assert not (tmp_path / "imagenet" / "val").exists()


def test_without_archives_it_says_where_they_go(tmp_path: Path) -> None:
    way = r"put ILSVRC2012_img_val\.tar and ILSVRC2012_devkit_t12\.tar\.gz .*data get imagenet"
    for download in (False, True):
        with pytest.raises(BadInput, match=way):
            load_data("imagenet", root=tmp_path, download=download)


def test_synsets_are_those_of_timm_in_the_order_of_the_classes() -> None:
    info = pytest.importorskip("timm.data").ImageNetInfo()
    assert info.label_names() == WNIDS
    assert list(synset_numbers().values()) == list(range(1000))
    described = [info.index_to_description(number).lower() for number in range(1000)]
    for number, name in enumerate(imagenet_classes()):
        if name not in ("crane bird", "maillot tank suit"):  # torchvision tells twins apart
            assert name.lower() in described[number]


def fill(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "a.jpeg").write_bytes(jpeg(1))


def test_a_part_of_the_classes_is_a_folder_of_ones_own(tmp_path: Path) -> None:
    fill(tmp_path / "val", [WNIDS[5], WNIDS[2]])
    with pytest.raises(BadInput, match="holds 2 class folders and not 1000") as error:
        load_data("imagenet", root=tmp_path)
    name = f"folder:{tmp_path / 'val'}"
    assert str(error.value).endswith(f"a part of ImageNet is read as {name}")
    model = Classifier(torch.nn.Flatten(), classes=imagenet_classes(), name="net")
    same, said = match_labels(load_data(name), model, 1000)
    assert (same.labels.tolist(), said) == ([2, 5], "")


@pytest.mark.parametrize("odd", ["0", "n99999999"])
def test_a_thousand_folders_must_be_the_synsets(tmp_path: Path, odd: str) -> None:
    every = [str(number) for number in range(1000)] if odd == "0" else [*WNIDS[1:], odd]
    fill(tmp_path / "val", every)
    with pytest.raises(BadInput, match=f"'{odd}' in .*val is no synset of ImageNet, .*n01440764"):
        load_data("imagenet", root=tmp_path)
    assert "is no synset of ImageNet" in find_source("imagenet").faults(tmp_path)[1].reason
