"""Reads landed text files line by line, with the byte offset of every line, and counts the lines without Spark.

A second, independent reader counts the lines and bytes of the files, so that the ledger can compare Spark's output
with its input.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lake.store_faults import landed_unreadable, landed_vanished
from patterns.ingestion.landed_links import require_within

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REPLAY_PREFIX = "replay-"
"""File name prefix of corrected dead letters."""
WITHIN = "within"
"""Option of the engine's `lines` format: a file behind a link that leads out of this folder yields no lines."""
CHUNK = 1 << 20


def is_replay() -> Column:
    """Build the condition that a row comes from a corrected dead letter, by its `source_file`."""
    from pyspark.sql import functions as F

    return F.element_at(F.split("source_file", "/"), -1).startswith(REPLAY_PREFIX)


@dataclass(frozen=True, kw_only=True)
class LandedSize:
    """Lines of a file, and its decompressed bytes, counted as if the last line ended in a line feed, too."""

    lines: int
    bytes: int


def measure(file: Path) -> LandedSize:
    """Count the lines and bytes of a plain or gzip file, in constant memory.

    Raises:
        LandedFileVanished: The file no longer exists; transient.
        LandedFileUnreadable: The file is truncated or corrupt, or may not be read.
    """
    try:
        return _measured(file)
    except FileNotFoundError as error:
        raise landed_vanished(str(file)) from error
    except (EOFError, OSError, zlib.error) as error:
        raise landed_unreadable(str(file), str(getattr(error, "strerror", None) or error)) from error


def _measured(file: Path) -> LandedSize:
    lines = total = 0
    last = b"\n"
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            lines += chunk.count(b"\n")
            total += len(chunk)
            last = chunk[-1:]
    # A last line without a line feed is a line too.
    unfinished = int(last != b"\n")
    return LandedSize(lines=lines + unfinished, bytes=total + unfinished)


def measure_all(files: Sequence[Path], root: Path) -> list[LandedSize]:
    """Measure several files in parallel.

    Args:
        files: The files.
        root: The landing zone.

    Raises:
        LinkRefused: A file lies behind a link that leads out of the landing zone; none was opened.
        PlatformError: As `measure`.
    """
    require_within(files, root)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(measure, files))


def read(spark: SparkSession, root: Path, files: Sequence[Path], *, engine: bool = True) -> DataFrame:
    """Read files as lines.

    Args:
        spark: The session.
        root: The landing zone; recorded file names are relative to it.
        files: The files; without any, the frame is empty.
        engine: Use the engine's `lines` format; otherwise Spark's text source and a window per file.

    Returns:
        `raw` BINARY, `source_offset` BIGINT, `source_file` STRING.

    Raises:
        LinkRefused: A file lies behind a link that leads out of the landing zone.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if not files:
        return spark.createDataFrame([], "raw BINARY, source_offset BIGINT, source_file STRING")
    require_within(files, root)
    paths = [str(file) for file in files]
    source = relative_to(root)
    if engine:
        lines = spark.read.format("lines").option(WITHIN, str(root)).load(paths)
        return lines.select("raw", "source_offset", source.alias("source_file"))
    text = (
        spark.read.option("lineSep", "\n")
        .text(paths)
        .select(
            F.col("value").cast("binary").alias("raw"),
            source.alias("source_file"),
            F.monotonically_increasing_id().alias("order"),
        )
    )
    before = Window.partitionBy("source_file").orderBy("order").rowsBetween(Window.unboundedPreceding, -1)
    offset = F.coalesce(F.sum(F.length("raw") + 1).over(before), F.lit(0)).cast("bigint")
    return text.withColumn("source_offset", offset).select("raw", "source_offset", "source_file")


def relative_to(root: Path) -> Column:
    """Build the Column with the name of a row's file, relative to a folder; the frame must be read from files."""
    from pyspark.sql import functions as F

    # Spark returns the path as a percent-encoded URI in which a plus sign is literal.
    address = F.expr("url_decode(replace(_metadata.file_path, '+', '%2B'))")
    return F.regexp_replace(address, f"^(file:)?/*{_literal(root)}/", "")


def _literal(root: Path) -> str:
    return "\\Q" + str(root).lstrip("/") + "\\E"
