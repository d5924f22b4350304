"""Reads landed text files line by line, with the byte offset of every line.

A second, independent reader counts the lines and bytes of each file without Spark, so that the ledger can compare
output with input, file by file. It also judges the files: none reaches Spark that cannot be read or exceeds the bounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.lake.store_faults import landed_unreadable, landed_vanished
from blogdata.patterns.ingestion import erased_lines
from blogdata.patterns.ingestion.landed_formats import DAMAGED, HEAD, MARK, content, foreign, stored_as
from blogdata.patterns.ingestion.landed_links import require_within

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REPLAY_PREFIX = "replay-"
"""File name prefix of corrected dead letters."""
WITHIN = "within"
"""Option of the engine's `lines` format: a file behind a link that leads out of this folder yields no lines."""
LONGEST = "longest"
"""Option of the engine's formats: maximum bytes of a line; a longer one ends the query."""
CHUNK = 1 << 20
_BY_SUFFIX = {".gz": "gzip", ".bz2": "bzip2", ".deflate": "", ".lz4": "", ".snappy": "", ".zst": "", ".xz": None}
"""What Spark's own sources take a file for by its name; empty: what the platform does not read."""


class LandedFileRefused(PlatformError):
    """Raised when a landed file is in a format that is not read, or exceeds the bounds of the configuration."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a landed file may need.

    Args:
        longest_line: Maximum bytes of a line; a line is in memory as a whole, several times.
        largest_file: Maximum decompressed bytes of a file.
    """

    longest_line: int = 16 << 20
    largest_file: int = 8 << 30


def is_replay() -> Column:
    """Build the condition that a row comes from a corrected dead letter, by its `source_file`."""
    from pyspark.sql import functions as F

    return F.element_at(F.split("source_file", "/"), -1).startswith(REPLAY_PREFIX)


@dataclass(frozen=True, kw_only=True)
class LandedSize:
    """Lines of a file, and its decompressed bytes, counted as if the last line ended in a line feed, too.

    A UTF-8 byte order mark at the start is not counted. Erased lines count as lines (:mod:`.erased_lines`).
    """

    lines: int
    bytes: int
    erased: int = 0
    erased_bytes: int = 0

    def __add__(self, other: LandedSize) -> LandedSize:
        """Return the size of both files together."""
        return LandedSize(
            lines=self.lines + other.lines,
            bytes=self.bytes + other.bytes,
            erased=self.erased + other.erased,
            erased_bytes=self.erased_bytes + other.erased_bytes,
        )

    @property
    def of_rows(self) -> tuple[int, int]:
        """Lines that are rows, and their bytes."""
        return self.lines - self.erased, self.bytes - self.erased_bytes


def measure(file: Path, bounds: Bounds | None = None, *, engine: bool = True) -> LandedSize:
    """Count the lines and bytes of a file, plain or compressed, in constant memory, as :func:`read` will read it."""
    with faults_of(file):
        if not engine:
            _require_named_for_spark(file)
        return _measured(file, bounds or Bounds())


@contextmanager
def faults_of(file: Path) -> Iterator[None]:
    """Raise what reading a landed file raises as typed errors that name it; one that has vanished is transient."""
    try:
        yield
    except FileNotFoundError as error:
        raise landed_vanished(str(file)) from error
    except DAMAGED as error:
        raise landed_unreadable(str(file), str(getattr(error, "strerror", None) or error)) from error


def _measured(file: Path, bounds: Bounds) -> LandedSize:
    lines = total = unfinished = 0
    may_be_erased = False
    with content(file) as stream:
        # No line within a chunk is too long, so only lines that span chunks have to be measured.
        size = min(CHUNK, bounds.longest_line)
        chunk = _first(stream, size)
        if (named := foreign(chunk)) is not None:
            raise _refused(file, named, "land text in UTF-8, plain or compressed once by gzip, bzip2, xz or zstd")
        chunk = chunk.removeprefix(MARK)
        while chunk:
            feeds = chunk.count(b"\n")
            longest = unfinished + (chunk.find(b"\n") if feeds else len(chunk))
            unfinished = len(chunk) - chunk.rfind(b"\n") - 1 if feeds else longest
            lines += feeds
            total += len(chunk)
            may_be_erased = may_be_erased or erased_lines.FILLER in chunk
            if max(longest, unfinished) > bounds.longest_line:
                raise _beyond(file, f"has a line of more than {bounds.longest_line:,} bytes", "longest_line")
            if total > bounds.largest_file:
                raise _beyond(file, f"has more than {bounds.largest_file:,} decompressed bytes", "largest_file")
            chunk = stream.read(size)
    # A last line without a line feed is a line too.
    last = int(unfinished > 0)
    erased, erased_bytes = erased_lines.count(file) if may_be_erased else (0, 0)
    return LandedSize(lines=lines + last, bytes=total + last, erased=erased, erased_bytes=erased_bytes)


def _first(stream: IO[bytes], size: int) -> bytes:
    """Read the first chunk, at least as long as what identifies a format, if the content is."""
    chunk = stream.read(size)
    while len(chunk) < HEAD and (more := stream.read(HEAD)):
        chunk += more
    return chunk


def _require_named_for_spark(file: Path) -> None:
    """Refuse a file that Spark's own sources would take for something else: they judge by the name."""
    if ":" in file.name and as_pattern(file) != str(file):
        raise _refused(
            file,
            "under a name with a colon and one of * ? [ ] { } \\",
            "give it another name; where Spark has the engine's jar, any name will do",
        )
    packed = stored_as(file)
    if _BY_SUFFIX.get(file.suffix) != packed or file.name.endswith("._COPYING_"):
        raise _refused(
            file,
            f"{packed or 'plain text'} under a name that tells Spark something else",
            "end its name with .gz for gzip, .bz2 for bzip2, and neither for plain text; where Spark has the engine's "
            "jar, a name says nothing",
        )


def _refused(file: Path, named: str, next_step: str) -> LandedFileRefused:
    return LandedFileRefused(
        what=f"a landed file is not read: it is {named}",
        where=str(file),
        next_step=f"nothing was published of its partition; {next_step}",
    )


def _beyond(file: Path, what: str, setting: str) -> LandedFileRefused:
    return LandedFileRefused(
        what=f"a landed file is not read: it {what}",
        where=str(file),
        next_step="nothing was published of its partition; have the file landed again, mended, or raise the setting "
        f"landing.{setting}",
    )


def judge_all(
    files: Sequence[Path], root: Path, bounds: Bounds | None = None, *, engine: bool = True
) -> list[LandedSize | PlatformError]:
    """Measure several files in parallel; each has its size, or the error that :func:`measure` raised."""
    require_within(files, root)

    def judged(file: Path) -> LandedSize | PlatformError:
        try:
            return measure(file, bounds, engine=engine)
        except PlatformError as error:
            return error

    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(judged, files))


def measure_all(files: Sequence[Path], root: Path, bounds: Bounds | None = None) -> list[LandedSize]:
    """Measure several files in parallel."""
    sizes = []
    for found in judge_all(files, root, bounds):
        if isinstance(found, PlatformError):
            raise found
        sizes.append(found)
    return sizes


def read(
    spark: SparkSession, root: Path, files: Sequence[Path], bounds: Bounds | None = None, *, engine: bool = True
) -> DataFrame:
    """Read files as lines; names are never patterns.

    Args:
        engine: Use the engine's `landed-lines` relation; otherwise Spark's text source and a window per file.

    Returns:
        `raw` BINARY, `source_offset` BIGINT, `source_file` STRING. A UTF-8 byte order mark at the start of a file is no
        part of `raw` of its first line, which begins at offset 0 all the same.

    Raises:
        LinkRefused: A file lies behind a link that leads out of the landing zone.
    """
    if not files:
        return spark.createDataFrame([], "raw BINARY, source_offset BIGINT, source_file STRING")
    require_within(files, root)
    if not engine:
        return _read_by_spark(spark, root, files)
    lines = spark.read.format("landed-lines").options(
        root=str(root),
        files=json.dumps([str(file.relative_to(root)) for file in files]),
        **{LONGEST: str((bounds or Bounds()).longest_line)},
    )
    return lines.load()


def _read_by_spark(spark: SparkSession, root: Path, files: Sequence[Path]) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    text = (
        spark.read.option("lineSep", "\n")
        .text([as_pattern(file) for file in files])
        .select(
            F.col("value").cast("binary").alias("raw"),
            relative_to(root).alias("source_file"),
            F.monotonically_increasing_id().alias("order"),
        )
    )
    before = Window.partitionBy("source_file").orderBy("order").rowsBetween(Window.unboundedPreceding, -1)
    # Spark drops a byte order mark; all lines but the first lie behind it.
    marked = [str(file.relative_to(root)) for file in files if _is_marked(file)]
    mark = F.when(F.col("source_file").isin(*marked), len(MARK)).otherwise(0) if marked else F.lit(0)
    offset = F.coalesce(F.sum(F.length("raw") + 1).over(before) + mark, F.lit(0)).cast("bigint")
    return text.withColumn("source_offset", offset).select("raw", "source_offset", "source_file")


def _is_marked(file: Path) -> bool:
    with faults_of(file), content(file) as stream:
        return stream.read(len(MARK)) == MARK


def as_pattern(path: Path) -> str:
    """Return the pattern by which Spark's own sources find exactly this path; they take every path for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))


def relative_to(root: Path) -> Column:
    """Build the Column with the name of a row's file, relative to a folder; the frame must be read from files."""
    from pyspark.sql import functions as F

    # Spark returns the path as a percent-encoded URI in which a plus sign is literal.
    address = F.expr("url_decode(replace(_metadata.file_path, '+', '%2B'))")
    return F.regexp_replace(address, f"^(file:)?/*{_literal(root)}/", "")


def _literal(root: Path) -> str:
    return "\\Q" + str(root).lstrip("/") + "\\E"
