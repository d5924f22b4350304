"""Reads the lines of landed files into a DataFrame, each with the byte at which it begins.

Spark's own file sources take paths as patterns, leave out names that look temporary, decode lines, and break them at
more than line feeds; a row is found again only by its file's exact name, its offset and its bytes. So Spark's Python
workers, which need this project in their environment, open files by their names and decompress them by their content.
A line of a plain file belongs to the byte range in which it begins: several tasks read a large file, and one task reads
many small ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from blogdata.contract.contract import Contract
from blogdata.contract.schema import Column as ContractColumn
from blogdata.errors import PlatformError
from blogdata.landing.landed_formats import DAMAGED, MARK, content, extension, stored_as
from blogdata.landing.landed_links import leading_out, require_within
from blogdata.table.faults import LandedFileVanished, landed_unreadable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from blogdata.operate.config import Settings

REPLAY_PREFIX = "replay-"
"""File name prefix of corrected dead letters."""
UNTIMED = "-untimed-"
"""Part of the name of files with rows of a table whose time is in no window (Incremental Loader)."""
POSITION = pa.schema(
    [
        pa.field("raw", pa.binary(), nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
    ]
)
"""The columns before those of the reader; `source_file` is relative to the landing zone."""
FILLER = b"\x7f"
"""What a line consists of that was erased (In-Place Overwriter), to DELs: it keeps its place, and is no row."""
LONGEST = 64 << 20
"""Bytes of a line that are read at once; a longer one is no landed line."""
_LANDED = "landed:"
"""The alias by which `ColumnLineage.java` knows landed lines, before the folder of their first file."""
_WITH_HEADERS = ("csv", "log")
"""Extensions of files in which a line may depend on a header above it."""
_TASK_BYTES = 8 << 20
_OPENING_BYTES = 1 << 16
_PACKED = 6
"""How many bytes of work a stored byte of a compressed file is, about."""
_BATCH_LINES, _BATCH_BYTES = 5_000, 8 << 20
_TYPES = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "BIGINT": pa.int64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
}
_PLACE = ("raw", "source_file", "source_offset", "arrival_hour", "load_date")
Values = tuple[object, ...]
"""One value for each column of a reader; of a rejected line any may be None but the reasons."""


class LineReader(ABC):
    """Reads landed lines into the columns of a contract; picklable, so that Spark's workers have the same one."""

    contract: ClassVar[Contract]
    """The dataset of the lines. `reasons` LIST<STRING> is one of its columns, empty for a usable line."""

    @property
    def columns(self) -> tuple[ContractColumn, ...]:
        """The columns that a line becomes: those of the contract, in this order, but for the line and its place."""
        return tuple(column for column in self.contract.columns if column.name not in _PLACE)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, _TYPES[column.type]) for column in self.columns])

    @abstractmethod
    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        """Return what reads the lines of a file in their order, by byte offset and bytes without the line feed."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a landed file may have, in bytes; a line is in memory as a whole, several times."""

    longest_line: int = 16 << 20
    largest_file: int = 8 << 30

    @classmethod
    def of(cls, settings: Settings) -> Bounds:
        return cls(longest_line=settings.longest_line, largest_file=settings.largest_file)


class Piece(NamedTuple):
    """A byte range of a file, by its name relative to the landing zone; an `end` of None is that of the file."""

    file: str
    partition: str
    start: int = 0
    end: int | None = None


def is_replay() -> Column:
    """Build the condition that a row comes from a corrected dead letter, by its `source_file`."""
    from pyspark.sql import functions as F

    return F.element_at(F.split("source_file", "/"), -1).startswith(REPLAY_PREFIX)


@contextmanager
def faults_of(file: Path) -> Iterator[None]:
    """Turn errors of reading a landed file into typed errors that name it; that of a vanished file is transient."""
    try:
        yield
    except FileNotFoundError as error:
        raise LandedFileVanished(str(file)) from error
    except DAMAGED as error:
        raise landed_unreadable(str(file), str(getattr(error, "strerror", None) or error)) from error


def lines(file: Path, longest: int, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Read the lines that begin in a byte range of a file, without line feeds; a compressed file is one range.

    Only a line feed ends a line. A UTF-8 byte order mark is no part of the first line, which begins at 0 all the same.

    Raises:
        OSError: A line has more bytes than the longest one, or the file cannot be read to its end (:data:`DAMAGED`).
    """
    with content(file) as stream:
        offset = start
        if start:
            # The byte before the range shows whether a line begins with the range.
            stream.seek(start - 1)
            offset = start - 1
            while (skipped := stream.readline(_BATCH_BYTES)) and not skipped.endswith(b"\n"):
                offset += len(skipped)
            offset += len(skipped)
        while end is None or offset < end:
            line = stream.readline(longest + len(MARK) + 1)
            if not line or (not offset and line == MARK):
                return
            raw = line.removesuffix(b"\n")
            if not offset:
                raw = raw.removeprefix(MARK)
            if len(raw) > longest:
                raise OSError(f"a line is longer than {longest} bytes")
            yield offset, raw
            offset += len(line)


def is_erased(raw: bytes) -> bool:
    return bool(raw) and not raw.strip(FILLER)


def kept_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file that were not erased, as :func:`lines`."""
    return ((offset, raw) for offset, raw in lines(file, LONGEST) if not is_erased(raw))


def read(
    spark: SparkSession, root: Path, files: Mapping[str, Sequence[Path]], reader: LineReader, bounds: Bounds = Bounds()
) -> DataFrame:
    """Read files, by partition, into the columns of :data:`POSITION` and of the reader; erased lines are no rows."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    every = [file for listed in files.values() for file in listed]
    require_within(every, root)
    work = Work(root=root, reader=reader, longest=bounds.longest_line)
    tasks = _tasks(root, files)
    schema = from_arrow_schema(work.schema)
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(partial(_of_tasks, work, tasks), schema)
    # A new table would name the collation of strings that come from workers.
    frame = frame.select(*(F.col(field.name).cast(field.dataType.simpleString()).alias(field.name) for field in schema))
    return frame.alias(f"{_LANDED}{(every or [root])[0].parent}")


def read_listed(
    listed: DataFrame, root: Path, reader: LineReader, partition_of: Callable[[str], str | None], bounds: Bounds
) -> DataFrame:
    """Read the files that a stream's source lists, in its column `path`, as :func:`read`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    work = Work(root=root, reader=reader, longest=bounds.longest_line)
    return listed.select("path").mapInArrow(partial(_of_paths, work, partition_of), from_arrow_schema(work.schema))


@dataclass(frozen=True, kw_only=True)
class Work:
    """How the lines of a landing zone are read, here or by Spark's workers."""

    root: Path
    reader: LineReader
    longest: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*POSITION, *self.reader.schema])

    def batches(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        """Read the lines of pieces in batches of bounded size."""
        for piece in pieces:
            file = self.root / piece.file
            with faults_of(file):
                if is_inside(file, self.root):
                    read_line = self.reader.of_file(piece.file, piece.partition)
                    every = lines(file, self.longest, piece.start, piece.end)
                    rows = (line for line in every if not is_erased(line[1]))
                    while batch := _taken(rows):
                        offsets, raws = zip(*batch, strict=True)
                        places = [pa.repeat(pa.scalar(text), len(batch)) for text in (piece.file, piece.partition)]
                        position = [pa.array(raws, pa.binary()), pa.array(offsets, pa.int64()), *places]
                        values = zip(*(read_line(*line) for line in batch), strict=True)
                        columns = [
                            pa.array(column, type_)
                            for column, type_ in zip(values, self.reader.schema.types, strict=True)
                        ]
                        yield pa.record_batch([*position, *columns], self.schema)


def _of_tasks(
    work: Work, tasks: Sequence[Sequence[Piece]], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with _named_for_spark():
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from work.batches(tasks[number])


def _of_paths(
    work: Work, partition_of: Callable[[str], str | None], paths: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with _named_for_spark():
        for batch in paths:
            for path in batch.column(0).to_pylist():
                name = str(Path("/" + path.removeprefix("file:").lstrip("/")).relative_to(work.root))
                if (partition := partition_of(name)) is not None:
                    yield from work.batches([Piece(name, partition)])


@contextmanager
def _named_for_spark() -> Iterator[None]:
    """Turn errors of reading a file into those that the client recognizes (:mod:`blogdata.table.faults`)."""
    try:
        yield
    except PlatformError as error:
        address = f"file://{quote(error.where, safe='/=')}"
        raise OSError(f"error while reading file {address}. {error.__cause__!r}") from None


def _taken(rows: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    taken, size = list[tuple[int, bytes]](), 0
    for line in rows:
        taken.append(line)
        size += len(line[1])
        if len(taken) >= _BATCH_LINES or size >= _BATCH_BYTES:
            break
    return taken


def is_inside(file: Path, root: Path) -> bool:
    """Return whether to open a file: a link or pipe may have taken its place since; one that is gone is named then."""
    return leading_out(file, root) is None and (file.is_file() or not file.exists())


def _tasks(root: Path, files: Mapping[str, Sequence[Path]]) -> list[list[Piece]]:
    """Group pieces of files to tasks of about the same work; a large plain file without headers is several pieces."""
    tasks, left = list[list[Piece]]([[]]), _TASK_BYTES
    for partition, listed in files.items():
        for file in listed:
            name = str(file.relative_to(root))
            with faults_of(file):
                stored, is_packed = file.stat().st_size, stored_as(file) is not None
            is_whole = is_packed or stored <= _TASK_BYTES or extension(name) in _WITH_HEADERS
            for start in range(0, 1 if is_whole else stored, _TASK_BYTES):
                # The last range ends with the file, even if it has grown.
                end = start + _TASK_BYTES if not is_whole and start + _TASK_BYTES < stored else None
                size = stored * _PACKED if is_packed else (end or stored) - start
                if tasks[-1] and size + _OPENING_BYTES > left:
                    tasks.append([])
                    left = _TASK_BYTES
                left -= size + _OPENING_BYTES
                tasks[-1].append(Piece(name, partition, start, end))
    return tasks
