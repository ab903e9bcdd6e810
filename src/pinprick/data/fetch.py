"""A file from the network: resumed where it broke off, checked, and complete or absent.

What has arrived is saved beside the file as ``NAME.part``. The next try, in this run or a later
one, asks the server for the rest; some servers send the whole file again. The file gets its name
once its checksum is right.
"""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput, one_line

Progress = Callable[[str, int, int], None]  # the file, bytes that have arrived, bytes in all

_CHUNK = 1 << 16
_TRIES = 5  # in a row that bring nothing, per address
_BROKEN = (OSError, http.client.HTTPException)  # a timeout and a refused address are OSErrors


def fetch(
    urls: Sequence[str],
    path: Path,
    md5: str,
    *,
    progress: Progress | None = None,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> None:
    """Fetch a file to ``path`` from the first address that sends all of it.

    Args:
        urls: Addresses of the same file.
        path: The file to write; its folder is made. Nothing is fetched if it is complete.
        md5: The checksum it must have.
        progress: Called as bytes arrive.
        timeout: Seconds of silence after which a connection is closed.
        pause: Seconds to wait after a try that brought nothing; doubled with each.
    """
    if has_checksum(path, md5):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    reasons = []
    with _lock(path.parent):
        if has_checksum(path, md5):  # another process has fetched it meanwhile
            return
        for url in urls:
            for _ in range(2):  # once more from the start if the saved part is of another file
                try:
                    _fetch_all(url, part, progress, timeout, pause)
                except _BROKEN as error:
                    reasons.append(f"{url}: {one_line(error)}")
                    break
                if has_checksum(part, md5):
                    part.replace(path)
                    return
                part.unlink()
                reasons.append(f"{url}: what it sends has another checksum")
    raise BadInput(
        f"{path.name} could not be fetched ({'; '.join(dict.fromkeys(reasons))}); what has "
        "arrived is saved, so try again when the network is there"
    )


def has_checksum(path: Path, md5: str) -> bool:
    """Whether the file is there and is the one that was published."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, _md5).hexdigest() == md5


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)


def _fetch_all(
    url: str, part: Path, progress: Progress | None, timeout: float, pause: float
) -> None:
    """Add to ``part`` until it is as long as the server says."""
    idle = 0
    while True:
        before = _size(part)
        try:
            if _fetch_more(url, part, progress, timeout):
                return
            reason: Exception = ConnectionError("the connection broke off")
        except _BROKEN as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code < 500 and error.code not in (408, 429):
                    raise  # the server does not have it
            reason = error
        idle = 0 if _size(part) > before else idle + 1
        if idle == _TRIES:
            raise reason
        if idle:
            time.sleep(pause * 2 ** (idle - 1))


def _fetch_more(url: str, part: Path, progress: Progress | None, timeout: float) -> bool:
    """Add what one connection sends; True once the file is as long as the server says."""
    have = _size(part)
    headers = {"User-Agent": "pinprick", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # nothing is left to send; the checksum decides
            raise
        error.close()
        return True
    with response:
        if not _continues(response, have):
            have = 0  # the server sends the whole file again
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else 0
        with part.open("ab" if have else "wb") as file:
            while chunk := response.read1(_CHUNK):
                file.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(part.stem, have, total)
    return have == total or not total


def _continues(response: Any, have: int) -> bool:
    asked = str(response.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
    return response.status == 206 and asked


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Wait until no other process fetches into the folder, on systems with file locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
