"""A folder of landed files as the source of a stream: its lines, and the files and sizes that each batch must have.

Another source, such as a broker topic, is another class with the same methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError, shown
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.lake.commit import Commit
from blogdata.lake.store_faults import LandedFileVanished
from blogdata.landing.landed_links import leading_out
from blogdata.landing.lines import Bounds, read_listed
from blogdata.landing.records import LineReader
from blogdata.landing.sizes import LandedSize, measure_all
from blogdata.patterns.error_management.checkpointer import Checkpoint
from blogdata.patterns.ingestion.landed_partition import irregular
from blogdata.patterns.ingestion.readiness_marker import scan
from blogdata.publish.audit import FileFigures
from blogdata.publish.partitions import Grain, start_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "raw BINARY, source_offset BIGINT"
_LISTED = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
LEFT_OUT = "left_out"
"""Key in the notes of a batch's commit: the files of the batch that are not read, each with the reason."""
_FOR_EVER = "36500d"
_NAMED = 5
_NOTHING = LandedSize(lines=0, bytes=0)


@dataclass(frozen=True, kw_only=True)
class BatchFile:
    """A file of a batch, with its arrival hour; None if the file is not read."""

    name: str
    hour: str | None
    size: LandedSize
    left_out: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamedFiles:
    """The files of a landed table, in folders by arrival hour, streamed in the order in which they came.

    A file is read once, when it is first seen: a producer must write under a hidden name and rename.
    """

    table: str
    suffixes: tuple[str, ...]
    files_per_batch: int = 200

    def checkpoint_properties(self, landing: Path) -> Mapping[str, str]:
        return {"kind": "files", "place": str(landing / self.table), "suffixes": " ".join(self.suffixes)}

    def lines(self, spark: SparkSession, landing: Path, reader: LineReader, bounds: Bounds) -> DataFrame:
        """Open the stream; a batch has the lines of its files, as :func:`blogdata.landing.lines.read`."""
        listed = (
            # Spark lists the files, in batches; only their paths are taken from it.
            spark.readStream.format("binaryFile")
            .schema(_LISTED)
            # Spark takes a hidden name with an equals sign for that of a partition.
            .option("pathGlobFilter", "[^_.]*{" + ",".join(self.suffixes) + "}")
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", str(self.files_per_batch))
            # By default Spark silently skips files that are a week older than the newest one it has seen.
            .option("maxFileAge", _FOR_EVER)
            # A glob pattern may match nothing yet; a plain folder would have to exist.
            .load(f"{_pattern(landing / self.table)}/date=*/hour=*")
        )
        return read_listed(listed, landing, reader, arrival_hour, bounds)

    def pending_input(self, checkpoint: Checkpoint | None, landing: Path) -> list[str]:
        """List what a query would ingest first, without Spark; the list changes when that input changes.

        Returns:
            The files of an uncommitted batch, each with its size and modification time, if there are any; otherwise the
            paths of the files that are in no batch yet.
        """
        if checkpoint is not None and (unfinished := checkpoint.unfinished()):
            return [f"{path} {_state(Path(path))}" for path in unfinished]
        seen = checkpoint.every_file() if checkpoint is not None else frozenset()
        there = {str(file) for file in self._files(landing)}
        return sorted(there - seen)

    def unread(self, checkpoint: Checkpoint, landing: Path) -> list[Path]:
        """List the landed files that no committed batch contains, without Spark."""
        read = checkpoint.every_file() - set(checkpoint.unfinished())
        return sorted(file for file in self._files(landing) if str(file) not in read)

    def _files(self, landing: Path) -> Iterator[Path]:
        for hour in scan(landing / self.table, Grain.HOUR):
            yield from (hour.folder / file.name for file in hour.files if file.name.endswith(self.suffixes))

    def batch_files(
        self, checkpoint: Checkpoint, batch: int, landing: Path, bounds: Bounds, *, at: int = 0
    ) -> Sequence[BatchFile]:
        """List the files of a batch from the checkpoint, and count their lines and bytes."""
        paths = [Path(path) for path in checkpoint.files(batch, at)]
        stray = {path: str(link) for path in paths if (link := leading_out(path, landing) or irregular(path))}
        read = [path for path in paths if path not in stray]
        try:
            sizes = dict(zip(read, measure_all(read, landing, bounds), strict=True))
        except LandedFileVanished as error:
            raise PlatformError(
                what="a landed file that belongs to a batch is gone",
                where=error.where,
                next_step=Remedy(
                    "put it back, or begin a new checkpoint, which goes on without it: ",
                    RunStream(name=checkpoint.stream, new_checkpoint=True),
                ),
            ) from error
        return [_batch_file(str(path.relative_to(landing)), sizes.get(path), stray.get(path)) for path in paths]


def _pattern(path: Path) -> str:
    """Return the pattern by which Spark's own sources find exactly this path; they take every path for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))


def _batch_file(name: str, size: LandedSize | None, stray: str | None) -> BatchFile:
    hour = arrival_hour(name)
    left_out = stray or (f"{name} lies in a folder whose name is no hour" if hour is None else None)
    return BatchFile(name=name, hour=None if left_out else hour, size=size or _NOTHING, left_out=left_out)


def left_out_notes(files: Sequence[BatchFile]) -> dict[str, list[str]]:
    """Build the note of a commit about the files of its batch that are not read."""
    return {LEFT_OUT: sorted({file.left_out for file in files if file.left_out is not None})}


def left_out_in(commits: Iterable[Commit]) -> list[str]:
    """Build the warnings about the files that batches did not read, from the notes of their commits."""
    found = sorted({one for commit in commits for one in commit.info["appended"]["notes"].get(LEFT_OUT, ())})
    more = [f"and {len(found) - _NAMED} more files that are not taken in"] if len(found) > _NAMED else []
    return [*(f"{shown.line(one)}, and is not taken in" for one in found[:_NAMED]), *more]


def by_hour(files: Sequence[BatchFile]) -> dict[str, LandedSize]:
    """Sum the lines and bytes of files by arrival hour; files that are not read are skipped."""
    sums: dict[str, LandedSize] = {}
    for file in files:
        if file.hour is not None:
            sums[file.hour] = sums.get(file.hour, _NOTHING) + file.size
    return sums


def figures_by_hour(files: Sequence[BatchFile]) -> dict[str, dict[str, FileFigures]]:
    """Map each arrival hour to its files' rows and their bytes; files that are not read are skipped."""
    found: dict[str, dict[str, FileFigures]] = {}
    for file in files:
        if file.hour is not None:
            found.setdefault(file.hour, {})[file.name] = file.size.of_rows
    return found


def arrival_hour(name: str) -> str | None:
    """Return the arrival hour of a file, by its name relative to the landing zone; it may lie deeper in the folder."""
    _, day, hour, *_ = [*name.split("/"), "", ""]
    key = f"{day.removeprefix('date=')}T{hour.removeprefix('hour=')}"
    try:
        start_of(key, Grain.HOUR)
    except ConfigurationError:
        return None
    return key if len(key) == len("2026-01-05T00") else None


def _state(file: Path) -> str:
    try:
        found = file.stat()
    except FileNotFoundError:
        return "is gone"
    return f"{found.st_size} {found.st_mtime_ns}"
