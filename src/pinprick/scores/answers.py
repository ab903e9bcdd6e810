"""A cache of answers by the content of the image: some in memory, all on disk.

The disk cache is an SQLite file, which several processes may share and which survives a kill. Its
keys are hashes of the image, the model's name and version, and the kind of answer. So several
models may share it too.
"""

import hashlib
import json
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pinprick.errors import BadInput

Row = NDArray[np.float64]

_SEVERAL = 500  # keys in one query
_PATIENCE = 60.0  # seconds to wait for another process


class Answers:
    """Rows of scores by the images they were given for.

    Args:
        name: Name of the model.
        version: Version of the model.
        kind: What a row holds: "scores", "probabilities" or "labels".
        folder: Folder of the file; None for no file.
        remember: How many rows are cached in memory.
    """

    def __init__(
        self, name: str, version: str, kind: str, *, folder: str | Path | None, remember: int
    ) -> None:
        self._model = hashlib.sha256(json.dumps([name, version, kind]).encode()).digest()
        self._memory: OrderedDict[bytes, Row] = OrderedDict()
        self._remember = remember
        self._path: Path | None = None
        if folder is not None:
            self._path = Path(folder).expanduser() / "scores.sqlite"
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadInput(f"cannot make the cache {folder}: {error.strerror}") from None
            with self._open() as file:
                file.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, row BLOB)")

    def keys(self, images: Tensor) -> list[bytes]:
        """The key of each image: a hash of the model, the shape and every value.

        Without any cache equal images may get different answers, so the key is the row.
        """
        if self._path is None and not self._remember:
            return [row.to_bytes(8) for row in range(len(images))]
        shape = repr(tuple(images.shape[1:])).encode()
        return [
            hashlib.sha256(self._model + shape + image.numpy().tobytes()).digest()
            for image in images
        ]

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """The cached answers."""
        found = {key: self._memory[key] for key in keys if key in self._memory}
        missing = [key for key in keys if key not in found]
        if self._path is not None and missing:
            with self._open() as file:
                for start in range(0, len(missing), _SEVERAL):
                    some = missing[start : start + _SEVERAL]
                    marks = ",".join("?" * len(some))
                    query = f"SELECT key, row FROM answers WHERE key IN ({marks})"
                    for key, row in file.execute(query, some):
                        found[key] = np.frombuffer(row, dtype="<f8")
        self._keep(found)
        return found

    def add(self, rows: dict[bytes, Row]) -> None:
        """Cache new answers, on disk before anything else happens."""
        if self._path is not None:
            with self._open() as file:
                packed = [(key, row.astype("<f8").tobytes()) for key, row in rows.items()]
                file.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", packed)
        self._keep(rows)

    def _keep(self, rows: dict[bytes, Row]) -> None:
        for key, row in rows.items():
            self._memory[key] = row
            self._memory.move_to_end(key)
        while len(self._memory) > self._remember:
            self._memory.popitem(last=False)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction, so that threads and forks need no care."""
        assert self._path is not None
        try:
            with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as file, file:
                yield file
        except sqlite3.OperationalError as error:
            raise BadInput(f"the cache {self._path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise BadInput(f"the cache {self._path} is damaged ({error}); delete it") from error
