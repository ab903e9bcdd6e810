"""Files are written whole or not at all, and a disk that refuses says so in one line."""

from pathlib import Path

import pytest

from pinprick import BadInput
from pinprick.files import (
    atomic_write,
    open_folder,
    reading,
    remove_leftovers,
    sha256,
    write_text,
    writing,
)


def test_a_write_that_fails_leaves_the_file_before_it_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    write_text(path, "whole")
    with pytest.raises(UnicodeEncodeError), atomic_write(path) as temporary:
        temporary.write_text("half" + "\ud800", encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["own.txt"]
    assert path.read_text() == "whole"


def test_a_file_written_anew_has_the_usual_mode_whatever_the_writer_sets(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "own.txt", flush=True) as temporary:
        temporary.write_text("new")
        temporary.chmod(0o600)
    (tmp_path / "other.txt").touch()
    assert (tmp_path / "own.txt").stat().st_mode == (tmp_path / "other.txt").stat().st_mode


def test_a_file_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"^cannot write .*file/own\.txt: Not a directory$"):
        write_text(tmp_path / "file" / "own.txt", "text")
    full = pytest.raises(BadInput, match=r"^cannot write to .*: No space left on device$")
    with full, writing(tmp_path):
        raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"^cannot write .*file/out: Not a directory; use --out$"):
        open_folder(tmp_path / "file" / "out", advice="use --out")
    open_folder(tmp_path / "new" / "out")
    assert list((tmp_path / "new" / "out").iterdir()) == []


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none cannot be read: No such file or directory$"):
        sha256(tmp_path / "none")
    with pytest.raises(BadInput, match=r"^x{200} cannot be read: "), reading(Path("x" * 300)):
        Path("x" * 300).read_bytes()


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".own.txt.17.tmp", "own.txt", ".other.txt.17.tmp"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "own.txt")
    assert {file.name for file in tmp_path.iterdir()} == {"own.txt", ".other.txt.17.tmp"}
