"""Downloads survive drops and refusals, fetch no byte twice, and are never half there."""

import hashlib
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.server import Shop, open_shop
from pinprick import BadInput
from pinprick.data.fetch import fetch

BODY = bytes(range(256)) * 2000
MD5 = hashlib.md5(BODY).hexdigest()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        shop.files["/a.gz"] = BODY
        yield shop


def get(shop: Shop, path: Path, *, names: tuple[str, ...] = ("a.gz",)) -> None:
    fetch([f"{shop.address}/{name}" for name in names], path, MD5, timeout=5.0, pause=0.001)


def test_a_file_comes_whole_and_once(shop: Shop, tmp_path: Path) -> None:
    for _ in range(2):
        get(shop, tmp_path / "deep" / "a.gz")
    assert (tmp_path / "deep" / "a.gz").read_bytes() == BODY
    assert shop.asked == [("/a.gz", None)]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.gz"]


def test_drops_are_taken_up_where_they_were(shop: Shop, tmp_path: Path) -> None:
    shop.drops = [1000, 70_000, 0, 1]
    get(shop, tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY
    ranges = [wanted for _, wanted in shop.asked]
    assert ranges == [None, "bytes=1000-", "bytes=71000-", "bytes=71000-", "bytes=71001-"]
    assert shop.sent == len(BODY)  # not a byte twice


def test_a_later_run_takes_up_what_an_earlier_left(shop: Shop, tmp_path: Path) -> None:
    shop.drops = [3000, *[0] * 5]
    with pytest.raises(BadInput, match=r"a\.gz could not be fetched .*broke off.* saved"):
        get(shop, tmp_path / "a.gz")
    assert not (tmp_path / "a.gz").exists()
    assert (tmp_path / "a.gz.part").stat().st_size == 3000
    get(shop, tmp_path / "a.gz")
    assert shop.asked[-1] == ("/a.gz", "bytes=3000-")
    assert (tmp_path / "a.gz").read_bytes() == BODY


def test_a_server_without_ranges_sends_the_whole_again(shop: Shop, tmp_path: Path) -> None:
    shop.ranges, shop.drops = False, [5000]
    get(shop, tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY
    assert shop.sent == 5000 + len(BODY)


def test_a_busy_server_is_asked_again(shop: Shop, tmp_path: Path) -> None:
    shop.refusals = [503, 500, 429]
    get(shop, tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY


def test_a_mirror_is_taken_where_the_first_address_has_nothing(shop: Shop, tmp_path: Path) -> None:
    get(shop, tmp_path / "a.gz", names=("gone.gz", "a.gz"))
    assert [path for path, _ in shop.asked] == ["/gone.gz", "/a.gz"]  # a 404 is not asked twice


@pytest.mark.parametrize("left", [b"something else", BODY + b"more", BODY[:-1] + b"x"])
def test_what_is_left_of_another_file_is_thrown_away(
    shop: Shop, tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "a.gz.part").write_bytes(left)
    get(shop, tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY


def test_a_file_that_is_whole_but_unnamed_is_not_fetched_again(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(BODY)
    get(shop, tmp_path / "a.gz")
    assert shop.sent == 0


def test_a_damaged_file_is_replaced(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(BODY[:-1] + b"x")
    get(shop, tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY


def test_a_file_with_another_checksum_is_refused(shop: Shop, tmp_path: Path) -> None:
    shop.files["/a.gz"] = b"a page that says: moved"
    with pytest.raises(BadInput, match="another checksum"):
        get(shop, tmp_path / "a.gz")
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a\.gz could not be fetched .*refused") as error:
        fetch(["http://127.0.0.1:9/a.gz"], tmp_path / "a.gz", MD5, pause=0.001)
    assert "\n" not in str(error.value)


def test_progress_counts_what_was_there_already(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(BODY[:500])
    seen: list[tuple[str, int, int]] = []
    fetch([f"{shop.address}/a.gz"], tmp_path / "a.gz", MD5, progress=lambda *now: seen.append(now))
    assert seen[0][1] > 500
    assert seen[-1] == ("a.gz", len(BODY), len(BODY))


@pytest.mark.slow
def test_two_processes_fetch_a_file_once(shop: Shop, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=fetch, args=([f"{shop.address}/a.gz"], tmp_path / "a.gz", MD5))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(shop.asked) == 1
