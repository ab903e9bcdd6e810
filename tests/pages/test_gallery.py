"""Which images a report shows, and pictures and changes packed and unpacked."""

import base64
import io
from dataclasses import replace

import numpy as np
from PIL import Image

from pages.test_aggregates import run
from pinprick.pages.gallery import Gallery, choose_images, pack_change, share_images
from pinprick.pages.report_parts import Change, Entry, ReportRun, changed_pixels
from pinprick.pages.tasks import TaskRuns


def task_of(*runs: ReportRun) -> TaskRuns:
    return TaskRuns(runs[0].task, {f"attack {at}": [one] for at, one in enumerate(runs)}, {})


def unpack(text: str, channels: int) -> tuple[list[int], list[int], list[int]]:
    """As the script of the page does it."""
    content = base64.b64decode(text)
    count = len(content) // (4 + 3 * channels)
    pixels = np.frombuffer(content, "<u4", count)
    before = np.frombuffer(content, "u1", count * channels, 4 * count)
    after = np.frombuffer(content, "<u2", count * channels, (4 + channels) * count)
    return pixels.tolist(), before.tolist(), after.tolist()


def test_a_change_is_packed_and_unpacked() -> None:
    clean = np.zeros((2, 3, 3), dtype=np.uint8)
    after = np.zeros((2, 3, 3), dtype=np.float32)
    after[1, 2] = (1.0, 0.5, 0.0)
    after[0, 1, 0] = 1 / 255
    pixels, before, values = unpack(pack_change(changed_pixels(clean, after)), 3)
    assert pixels == [1, 5]
    assert before == [0] * 6
    assert values == [257, 0, 0, 65535, 32768, 0]


def test_pictures_are_in_sheets_pixel_for_pixel_and_equal_ones_once() -> None:
    generator = np.random.default_rng(0)
    pictures = [generator.integers(0, 256, (5, 4, 3), dtype=np.uint8) for _ in range(70)]
    pictures.append(generator.integers(0, 256, (6, 6, 1), dtype=np.uint8))
    gallery = Gallery()
    numbers = [gallery.add_picture(picture) for picture in pictures]
    assert gallery.add_picture(pictures[3].copy()) == numbers[3]
    places, sheets = gallery.sheets()
    assert len(sheets) == 3  # 64 and 6 of one size, one of another
    for picture, number in zip(pictures, numbers, strict=True):
        assert number is not None
        sheet, left, top, width, height = places[number]
        with Image.open(io.BytesIO(base64.b64decode(sheets[sheet]))) as image:
            found = np.asarray(image)[top : top + height, left : left + width]
        assert (found.reshape(picture.shape) == picture).all()


def test_a_change_of_many_pixels_is_packed_as_a_picture() -> None:
    clean = np.zeros((8, 8, 3), dtype=np.uint8)
    for changed, kind in ((2, "pixels"), (60, "picture")):
        after = clean.copy()
        after.reshape(-1, 3)[:changed] = 255
        change = changed_pixels(clean, after)
        entry = Entry(image="a", name="a", status="fooled", picture=clean, change=change)
        gallery = Gallery()
        gallery.add_task(0, ["a"], {"pin": {"a": entry}})
        (packed,) = gallery.blocks["0-0"]["pin"]
        assert kind in packed
        if kind == "picture":
            assert (gallery.pictures[packed["picture"]] == after).all()


def test_an_image_without_a_clean_picture_says_so() -> None:
    change = Change((8, 8, 1), np.array([3], "u4"), None, np.array([[1.0]], "f4"))
    entry = Entry(image="a", name="a", status="fooled", change=change)
    gallery = Gallery()
    columns = gallery.add_task(0, ["a"], {"pin": {"a": entry}})
    assert columns["picture"] == [None]
    assert gallery.blocks["0-0"]["pin"][0]["no_clean"]


def test_texts_are_listed_once() -> None:
    entries = {
        name: Entry(image=name, name=name, status="fooled", label="cat", adversarial="dog")
        for name in ("a", "b")
    }
    columns = Gallery().add_task(0, ["a", "b"], {"pin": entries})
    assert columns["texts"] == ["cat", "dog"]
    assert columns["label"] == [0, 0]
    assert columns["attacks"]["pin"]["adversarial"] == [1, 1]


def test_all_images_are_shown_where_there_is_room() -> None:
    task = task_of(run(1, 2, 3))
    assert choose_images(task, 3) == ["image 0", "image 1", "image 2"]
    assert choose_images(task, 0) == []


def test_rare_images_come_first_and_the_rest_is_spread() -> None:
    fooled = [1.0] * 100
    failed = [1.0] * 100
    failed[41] = np.inf  # the attacks disagree on it
    task = task_of(run(*fooled), run(*failed))
    chosen = choose_images(task, 10)
    assert len(chosen) == 10
    assert "image 41" in chosen
    assert {"image 0", "image 99"} <= set(chosen)


def test_rare_images_have_at_most_half_of_the_places() -> None:
    lost = run(*[1.0] * 100)
    lost.lost_as_png[:50] = True
    chosen = choose_images(task_of(lost), 10)
    assert sum(lost.lost_as_png[int(name.split()[1])] for name in chosen) == 5


def test_images_are_shared_between_tasks_as_equally_as_their_numbers_allow() -> None:
    tasks = [task_of(run(*[1.0] * count)) for count in (50, 3, 50)]
    assert share_images(tasks, 43) == [20, 3, 20]
    assert share_images(tasks, 1000) == [50, 3, 50]
    assert share_images(tasks, 0) == [0, 0, 0]
    assert share_images(tasks, None) == [50, 3, 50]


def test_larger_images_are_fewer_by_default() -> None:
    small, large = run(*[1.0] * 2000), run(*[1.0] * 2000)
    large = replace(large, elements=3 * 224 * 224)
    assert share_images([task_of(small)], None) == [1000]
    (shown,) = share_images([task_of(large)], None)
    assert 40 < shown < 100
    assert share_images([task_of(large)], 500) == [500]
