"""A file from the network: taken up where it broke off, checked, and never half there.

What has come so far is kept beside the file as ``NAME.part``. The next try, in this run or a later
one, asks the server for the rest; one that cannot give a rest gives the whole. The file gets its
name once its checksum is right.
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

from pinprick.errors import BadInput

Progress = Callable[[str, int, int], None]  # the file, bytes that are there, bytes of the whole

_CHUNK = 1 << 16
_TRIES = 5  # in a row that bring nothing, for each address
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
    """Bring a file to ``path`` from the first address that has it whole.

    Args:
        urls: Addresses of the same file.
        path: Where it is to go; its folder is made. Nothing is done if it is there and whole.
        md5: The checksum it must have.
        progress: Told how far it is.
        timeout: Seconds of silence after which a connection is given up.
        pause: Seconds to wait after a try that brought nothing; they double with each.
    """
    if has_checksum(path, md5):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    reasons = []
    with _alone(path.parent):
        if has_checksum(path, md5):  # another process has fetched it meanwhile
            return
        for url in urls:
            for _ in range(2):  # once more from the start if what was kept is of another file
                try:
                    _complete(url, part, progress, timeout, pause)
                except _BROKEN as error:
                    reasons.append(f"{url}: {' '.join(str(error).split()) or type(error).__name__}")
                    break
                if has_checksum(part, md5):
                    part.replace(path)
                    return
                part.unlink()
                reasons.append(f"{url}: what it sends has another checksum")
    raise BadInput(
        f"{path.name} could not be fetched ({'; '.join(dict.fromkeys(reasons))}); what has come "
        "is kept, so try again when the network is there"
    )


def has_checksum(path: Path, md5: str) -> bool:
    """Whether the file is there and is the one that was published."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, _md5).hexdigest() == md5


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)


def _complete(
    url: str, part: Path, progress: Progress | None, timeout: float, pause: float
) -> None:
    """Add to ``part`` until the server says that it is whole."""
    idle = 0
    while True:
        before = _size(part)
        try:
            if _add(url, part, progress, timeout):
                return
            reason: Exception = ConnectionError("the connection broke off")
        except _BROKEN as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code < 500 and error.code not in (408, 429):
                    raise  # it is not there, and asking again will not help
            reason = error
        idle = 0 if _size(part) > before else idle + 1
        if idle == _TRIES:
            raise reason
        if idle:
            time.sleep(pause * 2 ** (idle - 1))


def _add(url: str, part: Path, progress: Progress | None, timeout: float) -> bool:
    """Add what one connection gives; True once the file is as long as the server says."""
    have = _size(part)
    headers = {"User-Agent": "pinprick", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # there is nothing after what we have; the checksum will tell
            raise
        error.close()
        return True
    with response:
        if not _continues(response, have):
            have = 0  # the whole comes, from the start
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
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process fetches into the folder, on systems that can tell."""
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
