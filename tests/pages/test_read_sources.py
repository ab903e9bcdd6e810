"""What a report is made from, and what is refused."""

import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pages.results import sample, write_folder, write_store
from pinprick import BadInput, save_result
from pinprick.bench.row_schema import ROWS
from pinprick.bench.store import Store
from pinprick.pages.from_documents import entry_of_row
from pinprick.pages.read_sources import read_sources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "made", sample([3, 0, 1, 2]))


def test_a_folder_has_its_run_and_its_pictures(folder: Path) -> None:
    (source,) = read_sources([folder])
    ((run, read),) = source.runs
    assert (run.task.model, run.task.data) == ("net", "fashion_sample/test[0:4]")
    assert run.outcomes.pixels.tolist() == [3, np.inf, 1, 2]
    first, second = read(run.images[:2])
    assert (first.status, first.pixels, first.png) == ("fooled", 3, True)
    assert (second.status, second.pixels, second.png) == ("not fooled", None, None)
    assert first.change is not None
    assert first.change.pixels.tolist() == [0, 1, 2]
    assert first.change.after.tolist() == [[1.0]] * 3
    assert first.picture is not None
    assert first.picture.shape == (28, 28, 1)


def test_an_explanation_without_groups_explains_nothing(folder: Path) -> None:
    row = json.loads((folder / "result.json").read_text())["images"][1]
    entry = entry_of_row({**row, "explanation": {"groups": []}}, "0", "boot")
    assert entry.explanation is None


def test_a_store_has_the_same_numbers_and_pictures_as_the_folder(
    folder: Path, tmp_path: Path
) -> None:
    store = write_store(tmp_path / "store", [sample([3, 0, 1, 2])])
    (of_store,), (of_folder,) = (read_sources([path])[0].runs for path in (store, folder))
    assert of_store[0].images == of_folder[0].images
    assert of_store[0].outcomes.pixels.tolist() == of_folder[0].outcomes.pixels.tolist()
    for one, other in zip(
        of_store[1](of_store[0].images), of_folder[1](of_folder[0].images), strict=True
    ):
        assert (one.status, one.elements, one.margin) == (
            other.status,
            other.elements,
            other.margin,
        )
        assert one.picture is not None
        assert (one.picture == other.picture).all()
        assert one.change is not None
        assert other.change is not None
        assert one.change.pixels.tolist() == other.change.pixels.tolist()
        assert one.change.before is not None
        assert (one.change.before == other.change.before).all()


def test_a_run_that_a_store_has_with_and_without_victims_is_one_run(tmp_path: Path) -> None:
    store = Store(write_store(tmp_path / "store", [sample([3, 0, 1, 2])]))
    ((cell, origin),) = store.cells().values()
    alone = replace(cell, victims=())
    rows = store.read(cell.key)[2].to_pylist()
    bare = [{**row, "cell": alone.key, "victims": [], "victims_clean": []} for row in rows]
    store.write(alone, pa.Table.from_pylist(bare, schema=ROWS), origin)
    ((run, _),) = read_sources([store.folder])[0].runs
    assert (len(run.images), len(run.lost_as_png)) == (4, 4)


def test_a_store_names_the_classes_of_its_dataset(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [sample([3])])
    ((run, read),) = read_sources([store])[0].runs
    (entry,) = read(run.images)
    assert (entry.label, entry.adversarial) == ("ankle boot", "T-shirt/top")


def test_pictures_of_other_data_are_not_shown(tmp_path: Path) -> None:
    result = sample([3])
    darker = replace(result, images=result.images.clamp(max=0.5))  # another hash
    for name, one, found in (("same", result, True), ("other", darker, False)):
        ((run, read),) = read_sources([write_store(tmp_path / name, [one])])[0].runs
        (entry,) = read(run.images)
        assert (entry.picture is not None) is found


def test_a_png_that_differs_in_more_pixels_than_were_counted_has_no_clean_picture(
    folder: Path,
) -> None:
    document = json.loads((folder / "result.json").read_text())
    document["images"][0]["l0_pixels"] = 2  # three pixels differ
    (folder / "result.json").write_text(json.dumps(document))
    ((run, read),) = read_sources([folder])[0].runs
    entry = read(run.images)[0]
    assert entry.picture is None
    assert entry.after is not None


def test_a_png_that_is_far_too_large_is_left_out(folder: Path) -> None:
    file = folder / "sample-0-adversarial.png"
    data = bytearray(file.read_bytes())
    data[16:24] = struct.pack(">II", 60_000, 60_000)  # width and height in the header
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    file.write_bytes(data)
    ((run, read),) = read_sources([folder])[0].runs
    assert read(run.images)[0].after is None


def test_files_outside_the_folder_are_not_read(folder: Path, tmp_path: Path) -> None:
    (folder / "sample-0-adversarial.png").rename(tmp_path / "elsewhere.png")
    document = json.loads((folder / "result.json").read_text())
    document["images"][0]["files"]["adversarial"] = "../elsewhere.png"
    (folder / "result.json").write_text(json.dumps(document))
    ((run, read),) = read_sources([folder])[0].runs
    assert read(run.images)[0].after is None


def test_a_saved_result_has_its_values_in_full(tmp_path: Path) -> None:
    result = sample([2])
    adv = result.adversarial.clone()
    adv[0, 0, 0, 0] = 0.3333
    save_result(replace(result, adversarial=adv), tmp_path / "best.safetensors")
    ((run, read),) = read_sources([tmp_path / "best.safetensors"])[0].runs
    (entry,) = read(run.images)
    assert entry.change is not None
    assert entry.change.after.ravel().tolist() == pytest.approx([0.3333, 1.0])


def test_the_size_of_images_is_known_where_none_changed(tmp_path: Path) -> None:
    failed = sample([0, 0])
    save_result(failed, tmp_path / "failed.safetensors")
    paths = [
        write_folder(tmp_path / "pngs", failed),
        write_folder(tmp_path / "dataset", failed),
        write_store(tmp_path / "store", [failed]),
        tmp_path / "failed.safetensors",
    ]
    for png in paths[1].glob("*.png"):
        png.unlink()
    sizes = [run.elements for source in read_sources(paths) for run, _ in source.runs]
    assert sizes == [28 * 28] * 4


def test_errors_of_a_store_are_images_of_their_own_kind(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [sample([1, 2])], error="out of memory")
    (source,) = read_sources([store])
    runs = {run.attack: (run, read) for run, read in source.runs}
    broken, read = runs["broken"]
    assert (len(broken.images), len(broken.failed)) == (0, 2)
    entry = read(broken.failed)[1]
    assert (entry.status, entry.remark) == ("error", "out of memory")
    assert entry.picture is not None
    assert not runs["pin"][0].failed


def test_a_folder_of_seeds_gives_a_run_per_seed(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_folder(tmp_path / f"seed-{seed}", sample([1, 2], seed=seed))
    assert [run.seed for source in read_sources([tmp_path]) for run, _ in source.runs] == [0, 1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone", None, "there is no file or folder"),
        ("result.json", "{", "is not JSON"),
        ("result.json", "[]", "is not a result of pinprick"),
        ("result.json", '{"images": []}', "is not a result of pinprick"),
        ("result.json", '{"images": [{"name": "a"}], "attack": {"name": "x"}}', "is not a result"),
        ("notes.txt", "hello", "holds no results"),
    ],
)
def test_what_is_no_result_is_refused(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=message):
        read_sources([tmp_path / name])


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no results; give a store"):
        read_sources([tmp_path])
