"""Reads the lines of landed files, each with the byte at which it begins, as a DataFrame of what its reader finds.

Problem: Spark's own file sources take paths as patterns, leave out names that look temporary, decode lines, and break
them at more than line feeds. To find a row again, its file's exact name, its offset and its exact bytes are needed.
How it works: files are opened by their exact names and decompressed by their content. The lines of a plain file belong
to the byte range in which they begin, so that a large file is read by several tasks. Spark's Python workers read them,
and need this project in their environment.
The trap: a task for each file. A thousand small files are a few tasks. And to read few lines in the client, and send
them: while workers wait for work (:mod:`.worker_daemon`) that takes longer, whether they are 200 lines or 40,000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from blogdata.errors import PlatformError
from blogdata.lake.store_faults import landed_unreadable, landed_vanished
from blogdata.landing.erased_lines import is_erased
from blogdata.landing.landed_formats import DAMAGED, MARK, content, stored_as
from blogdata.landing.landed_links import leading_out, require_within
from blogdata.landing.records import LineReader, Values

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REPLAY_PREFIX = "replay-"
"""File name prefix of corrected dead letters."""
POSITION = pa.schema(
    [
        pa.field("raw", pa.binary(), nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
    ]
)
"""The columns before those of the reader; `source_file` is relative to the landing zone."""
_LANDED = "landed:"
"""The alias by which `ColumnLineage.java` knows landed lines, before the folder of their first file."""
_TASK_BYTES = 8 << 20
_OPENING_BYTES = 1 << 16
_PACKED = 6
"""How many bytes of work a stored byte of a compressed file is, about."""
_BATCH_LINES, _BATCH_BYTES = 5_000, 8 << 20


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a landed file may need.

    Args:
        longest_line: Maximum bytes of a line; a line is in memory as a whole, several times.
        largest_file: Maximum decompressed bytes of a file.
    """

    longest_line: int = 16 << 20
    largest_file: int = 8 << 30


class Piece(NamedTuple):
    """A byte range of a file, by its name relative to the landing zone; an `end` of None is that of the file."""

    file: str
    partition: str
    start: int = 0
    end: int | None = None


def as_pattern(path: Path) -> str:
    """Return the pattern by which Spark's own sources find exactly this path; they take every path for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))


def is_replay() -> Column:
    """Build the condition that a row comes from a corrected dead letter, by its `source_file`."""
    from pyspark.sql import functions as F

    return F.element_at(F.split("source_file", "/"), -1).startswith(REPLAY_PREFIX)


@contextmanager
def faults_of(file: Path) -> Iterator[None]:
    """Raise what reading a landed file raises as typed errors that name it; one that has vanished is transient."""
    try:
        yield
    except FileNotFoundError as error:
        raise landed_vanished(str(file)) from error
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


def read(
    spark: SparkSession, root: Path, files: Mapping[str, Sequence[Path]], reader: LineReader, bounds: Bounds = Bounds()
) -> DataFrame:
    """Read files, by partition; the columns are those of :data:`POSITION` and of the reader; erased lines are no rows.

    Raises:
        LinkRefused: A file lies behind a link that leads out of the landing zone.
        LandedFileVanished: A file no longer exists; transient.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    require_within((file for found in files.values() for file in found), root)
    work = Work(root=root, reader=reader, longest=bounds.longest_line)
    tasks = _tasks(root, files, reader)
    schema = from_arrow_schema(work.schema)
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_Numbered(work, tasks), schema)
    first = next((file for found in files.values() for file in found), root)
    return frame.alias(f"{_LANDED}{first.parent}")


def read_listed(
    listed: DataFrame, root: Path, reader: LineReader, partition_of: Callable[[str], str | None], bounds: Bounds
) -> DataFrame:
    """Read the files that a stream's source lists, in its column `path`, as :func:`read`.

    Args:
        partition_of: The partition of a file, by its name relative to the landing zone; one without any has no lines.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    work = Work(root=root, reader=reader, longest=bounds.longest_line)
    return listed.select("path").mapInArrow(_Listed(work, partition_of), from_arrow_schema(work.schema))


def completed(
    rows: DataFrame, reader: LineReader, columns: Sequence[str], *, partition: str, older: Collection[str]
) -> DataFrame:
    """Return lines that a table has, each with the reader's columns.

    Args:
        partition: The table's name of the column `partition`.
        older: Partitions that an earlier release has published, without these columns: their lines are read again. A
            line that was usable then, and is rejected now, ends the query: its partition has to be computed again.
    """
    from pyspark.sql import functions as F

    if not older:
        return rows
    is_older = F.col(partition).isin(*sorted(older))
    again = read_again(rows.where(is_older), reader, columns, partition=partition, usable=True)
    # A table to which nothing was published since lacks the columns.
    return again if {*columns} - {*rows.columns} else rows.where(~is_older).unionByName(again)


def read_again(
    rows: DataFrame, reader: LineReader, columns: Sequence[str], *, partition: str, usable: bool = False
) -> DataFrame:
    """Replace columns of lines that a table has by those that the reader finds; other columns stay."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    # A line may depend on earlier ones of its file.
    kept = rows.drop(*columns).repartition(partition, "source_file")
    in_order = kept.sortWithinPartitions(partition, "source_file", "source_offset")
    found = from_arrow_schema(pa.schema([reader.schema.field(name) for name in columns]))
    return in_order.mapInArrow(_Again(reader, columns, partition, usable), StructType([*kept.schema, *found]))


def schema_of(reader: LineReader) -> pa.Schema:
    """Return the schema of the lines that a reader has read."""
    return pa.schema([*POSITION, *reader.schema])


@dataclass(frozen=True, kw_only=True)
class Work:
    """How the lines of a landing zone are read, here or by Spark's workers."""

    root: Path
    reader: LineReader
    longest: int

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.reader)

    def batches(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        """Read the lines of pieces in batches of bounded size."""
        schema = self.schema
        for piece in pieces:
            file = self.root / piece.file
            with faults_of(file):
                if _is_inside(file, self.root):
                    read_line = self.reader.of_file(piece.file, piece.partition)
                    found = lines(file, self.longest, piece.start, piece.end)
                    yield from _batches(piece, found, read_line, schema)


@dataclass(frozen=True)
class _Numbered:
    """Reads the tasks whose numbers a batch has."""

    work: Work
    tasks: Sequence[Sequence[Piece]]

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _named_for_spark():
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from self.work.batches(self.tasks[number])


@dataclass(frozen=True)
class _Listed:
    """Reads the files whose paths a batch has."""

    work: Work
    partition_of: Callable[[str], str | None]

    def __call__(self, paths: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        root = self.work.root
        with _named_for_spark():
            for batch in paths:
                for path in batch.column(0).to_pylist():
                    name = str(Path("/" + path.removeprefix("file:").lstrip("/")).relative_to(root))
                    if (partition := self.partition_of(name)) is not None:
                        yield from self.work.batches([Piece(name, partition)])


@dataclass(frozen=True)
class _Again:
    """Adds columns that the reader finds in the lines of a batch, which are in the order of their files."""

    reader: LineReader
    columns: Sequence[str]
    partition: str
    usable: bool

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place, of = (self.partition, "source_file", "source_offset", "raw"), None
        schema = self.reader.schema
        reasons = schema.get_field_index("reasons")
        for batch in rows:
            values = list[Values]()
            for partition, file, offset, raw in zip(*(batch.column(name).to_pylist() for name in place), strict=True):
                if of != (file, partition):
                    of, read_line = (file, partition), self.reader.of_file(file, partition)
                values.append(read_line(offset, raw))
                if self.usable and values[-1][reasons]:
                    raise ValueError(
                        f"{file}, byte {offset}, was usable once: {values[-1][reasons]}; run {partition} again"
                    )
            found = dict(zip(schema.names, _columns(values, schema), strict=True))
            added = [found[name] for name in self.columns]
            yield pa.record_batch([*batch.columns, *added], names=[*batch.schema.names, *self.columns])


@contextmanager
def _named_for_spark() -> Iterator[None]:
    """Raise what reading a file raises as the client classifies it (:mod:`blogdata.lake.store_faults`)."""
    try:
        yield
    except PlatformError as error:
        address = f"file://{quote(error.where, safe='/=')}"
        raise OSError(f"error while reading file {address}. {error.__cause__!r}") from None


def _columns(values: Sequence[Values], schema: pa.Schema) -> list[pa.Array]:
    found = zip(*values, strict=True) if values else ((),) * len(schema)
    return [pa.array(column, field.type) for column, field in zip(found, schema, strict=True)]


def _batches(
    piece: Piece, found: Iterable[tuple[int, bytes]], read_line: Callable[[int, bytes], Values], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    found_in_line = pa.schema(list(schema)[len(POSITION) :])
    raws, offsets, values, size = list[bytes](), list[int](), list[Values](), 0

    def batch() -> pa.RecordBatch:
        places = [pa.repeat(pa.scalar(text, pa.string()), len(raws)) for text in (piece.file, piece.partition)]
        position = [pa.array(raws, pa.binary()), pa.array(offsets, pa.int64()), *places]
        return pa.record_batch([*position, *_columns(values, found_in_line)], schema)

    for offset, raw in found:
        if is_erased(raw):
            continue
        raws.append(raw)
        offsets.append(offset)
        values.append(read_line(offset, raw))
        size += len(raw)
        if len(raws) >= _BATCH_LINES or size >= _BATCH_BYTES:
            yield batch()
            raws, offsets, values, size = [], [], [], 0
    if raws:
        yield batch()


def _is_inside(file: Path, root: Path) -> bool:
    """Return whether to open a file: links and pipes may have come to its place after it was listed.

    One that is gone is opened, for the error that names it.
    """
    return leading_out(file, root) is None and (file.is_file() or not file.exists())


def _tasks(root: Path, files: Mapping[str, Sequence[Path]], reader: LineReader) -> list[list[Piece]]:
    """Group pieces of files to tasks of about the same work; a large plain file without state is several pieces."""
    tasks, left = list[list[Piece]]([[]]), _TASK_BYTES
    for partition, found in files.items():
        for file in found:
            name = str(file.relative_to(root))
            with faults_of(file):
                stored, is_packed = file.stat().st_size, stored_as(file) is not None
            is_whole = is_packed or stored <= _TASK_BYTES or reader.has_state(name)
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
