"""Clean images and names of classes for the rows of a store."""

from pathlib import Path

from pages.results import DATA, sample, write_store
from pinprick.bench.store import Store
from pinprick.pages.dataset_pictures import DatasetPictures


def test_images_and_classes_of_a_dataset_are_found_by_index_and_number(tmp_path: Path) -> None:
    store = Store(write_store(tmp_path / "store", [sample([3, 1])]))
    pictures = DatasetPictures(DATA, store, store.rows_and_cells(whole=True)[1])
    clean = pictures.clean(1)
    assert clean is not None
    assert clean.shape == (28, 28, 1)
    assert pictures.clean(2) is None  # no cell has it
    assert pictures.class_name(9) == "ankle boot"
    assert pictures.class_name(None) is None


def test_without_the_dataset_classes_have_numbers_and_images_are_missing(tmp_path: Path) -> None:
    store = Store(write_store(tmp_path / "store", [sample([3])]))
    cells = store.rows_and_cells(whole=True)[1]
    pictures = DatasetPictures("nowhere/test[0:4]", store, cells)
    assert pictures.clean(0) is None
    assert pictures.class_name(9) == "class 9"
