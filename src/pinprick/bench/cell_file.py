"""The Parquet file of one finished cell.

It holds the rows. What the cell is, where its rows come from and the hash of the rows stand in the
file's metadata, under ``pinprick``. All other files are damaged.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pinprick.bench.cell import Cell, canonical
from pinprick.bench.extra import needed
from pinprick.errors import BadInput
from pinprick.files import atomic_write, sync_folder, writing
from pinprick.json_text import read_json

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
NO_VICTIMS = "no predictions of victims: "  # in the remark of a row; victim and error follow
_META = "pinprick"
_COARSE = 2_000_000_000  # nanoseconds in which a disk may give two changes the same time


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the rows of a cell come from.

    Attributes:
        version: Version of pinprick.
        commit: Commit of its source; empty if unknown.
        torch: Version of torch.
        device: The device, with its name.
        date: When the cell was finished, in UTC, as ISO 8601.
        seconds: Time of the whole cell.
        peak_memory: Peak memory in bytes, of the GPU or of the process; None if unknown.
    """

    version: str
    commit: str
    torch: str
    device: str
    date: str
    seconds: float
    peak_memory: int | None


class Stamp(NamedTuple):
    """By which a changed file is noticed."""

    size: int
    mtime_ns: int

    @property
    def settled(self) -> bool:
        """Whether the file is so old that any further change would change the stamp."""
        return time.time_ns() - self.mtime_ns > _COARSE


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Stamp(found.st_size, found.st_mtime_ns)


class Damaged(BadInput):
    """A file in a store that holds no rows of a cell."""


class Newer(BadInput):
    """A file in a store that a newer version of pinprick wrote."""


class About(NamedTuple):
    """What a file says about its rows."""

    cell: Cell
    origin: Origin
    rows_sha256: str


def write_cell_file(path: Path, cell: Cell, table: "pa.Table", origin: Origin) -> None:
    """Write the rows of a cell, whole or not at all."""
    parquet = needed("pyarrow.parquet")
    if table.num_rows != len(cell):
        raise ValueError(f"{table.num_rows} rows for the {len(cell)} images of {cell.title}")
    about = {
        "format": FORMAT,
        "cell": cell.plain(),
        "origin": asdict(origin),
        "rows_sha256": rows_sha256(table),
    }
    content = BytesIO()
    encodings = _encodings(table.schema)
    with parquet.ParquetWriter(
        content,
        table.schema,
        compression="zstd",
        store_schema=False,
        write_statistics=False,  # half of a small file; nothing here looks for a range of values
        column_encoding=encodings,
        use_dictionary=[name for name in _leaves(table.schema) if name not in encodings],
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_META: canonical(about)})
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, flush=True) as temporary:
        temporary.write_bytes(content.getbuffer())
    sync_folder(path.parent)


def read_cell_file(path: Path) -> tuple[Cell, Origin, "pa.Table"]:
    """A finished cell, where its rows come from, and the rows.

    ``Damaged`` if it is not one, ``Newer`` if only a newer version can tell.
    """
    parquet = needed("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(needed("pyarrow").BufferReader(path.read_bytes()))
        table = file.read(use_threads=False)
    except Exception as error:  # pyarrow has a kind of error for each kind of damage
        raise Damaged(f"{path} is damaged: it cannot be read as Parquet") from error
    about = _about(path, (file.metadata.metadata or {}).get(_META.encode()))
    try:
        digest = rows_sha256(table)
    except needed("pyarrow").ArrowException:  # columns of a kind that rows do not have
        digest = ""
    if about.rows_sha256 != digest:
        raise Damaged(f"{path} is damaged: its rows are not those that were written")
    return about.cell, about.origin, table.replace_schema_metadata(None)


def errors_in(path: Path) -> Counter[str]:
    """What failed in the rows of a finished cell, and in how many rows.

    That is the error of a row, or why it lacks the predictions of victims.
    """
    names = ["error", "remark"]
    return failures(needed("pyarrow.parquet").ParquetFile(path).read(names, use_threads=False))


def failures(table: "pa.Table") -> Counter[str]:
    """What failed in rows, as in ``errors_in``."""
    errors, remarks = (table.column(name).to_pylist() for name in ("error", "remark"))
    victims = (
        remark[remark.index(NO_VICTIMS) :] for remark in remarks if NO_VICTIMS in (remark or "")
    )
    return Counter([*filter(None, errors), *victims])


def read_about(path: Path) -> About | None:
    """What the metadata of a file says; None if it is not that of a cell. No row is read.

    ``Newer`` if a newer version wrote it.
    """
    polars = needed("polars")
    try:
        return _about(path, polars.read_parquet_metadata(path).get(_META))
    except Newer:
        raise
    except (Exception, polars.exceptions.PanicException):  # damaged in one of many ways
        return None


def _about(path: Path, text: str | bytes | None) -> About:
    """What the metadata of a file says, checked; ``Damaged`` or ``Newer`` if it is no cell here."""
    if text is None:
        raise Damaged(f"{path} was written by another program")
    try:
        about = read_json(text, str(path))
        number = about["format"]
        if isinstance(number, int) and number > FORMAT:
            raise Newer(
                f"{path} has format {number}, this version of pinprick reads up to {FORMAT}; "
                "install the newer version, or use another store"
            )
        if number != FORMAT:
            raise ValueError(f"format {number}, not {FORMAT}")
        cell, origin = Cell.from_plain(about["cell"]), Origin(**about["origin"])
        digest = about["rows_sha256"]
    except Newer:
        raise
    except (BadInput, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    if cell.key != path.stem:
        raise Damaged(f"{path} holds another cell than its name says")
    return About(cell, origin, digest)


def _encodings(schema: "pa.Schema") -> dict[str, str]:
    """The encodings of numbers that make files of few rows small, by column."""
    pa: Any = needed("pyarrow")
    return {
        name: "DELTA_BINARY_PACKED" if pa.types.is_integer(kind) else "BYTE_STREAM_SPLIT"
        for name, kind in _leaves(schema).items()
        if pa.types.is_integer(kind) or pa.types.is_floating(kind)
    }


def _leaves(schema: "pa.Schema") -> dict[str, "pa.DataType"]:
    """The columns of values in a Parquet file with this schema, as Parquet names them."""
    pa: Any = needed("pyarrow")
    found: dict[str, Any] = {}

    def add(name: str, kind: Any) -> None:
        if pa.types.is_list(kind):
            add(f"{name}.list.element", kind.value_type)
        elif pa.types.is_struct(kind):
            for field in kind:
                add(f"{name}.{field.name}", field.type)
        else:
            found[name] = kind

    for field in schema:
        add(field.name, field.type)
    return found


def rows_sha256(table: "pa.Table", *, without: Sequence[str] = ()) -> str:
    """The SHA-256 of the values in a table, the same before and after it was in a file.

    Args:
        table: The rows.
        without: Columns that do not count, such as times.
    """
    pa: Any = needed("pyarrow")
    digest = hashlib.sha256()
    for name in table.column_names:
        if name not in without:
            digest.update(f"{name}\n".encode())
            chunks = table.column(name).chunks
            _update(
                digest, chunks[0] if len(chunks) == 1 else _joined(table.column(name)), pa.types
            )
    return digest.hexdigest()


def _joined(column: Any) -> Any:
    """The values of several chunks, or of none, as one array."""
    pa: Any = needed("pyarrow")
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)


def _update(digest: Any, array: Any, types: Any) -> None:
    """Add the values of an array, which may hold lists and structures."""
    full = array.null_count == 0  # nearly always, and much faster
    valid = b"\1" * len(array) if full else array.is_valid().to_numpy(zero_copy_only=False)
    digest.update(valid)
    kind = array.type
    if types.is_list(kind):
        lengths = array.value_lengths()
        lengths = lengths if full else lengths.fill_null(0)
        digest.update(lengths.to_numpy(zero_copy_only=False))
        _update(digest, array.flatten(), types)
    elif types.is_struct(kind):
        for field, values in zip(kind, array.flatten(), strict=True):
            digest.update(f"{field.name}\n".encode())
            _update(digest, values, types)
    elif types.is_string(kind):
        digest.update("".join(map(repr, array.to_pylist())).encode())
    else:
        digest.update(str(kind).encode())
        if not full:
            array = array.fill_null(False if types.is_boolean(kind) else 0)
        digest.update(array.to_numpy(zero_copy_only=False))
