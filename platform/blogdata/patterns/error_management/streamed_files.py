"""A folder of landed files as the source of a stream: its lines, and the files and sizes that each batch must have.

Another source, such as a broker topic, is another class with the same methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError, shown
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.lake.commit import Commit
from blogdata.lake.store_faults import LandedFileVanished
from blogdata.patterns.error_management.checkpointer import Checkpoint
from blogdata.patterns.ingestion.erased_lines import is_kept
from blogdata.patterns.ingestion.landed_entries import Obstacle, irregular
from blogdata.patterns.ingestion.landed_formats import extension
from blogdata.patterns.ingestion.landed_lines import (
    LONGEST,
    REPLAY_PREFIX,
    WITHIN,
    Bounds,
    LandedSize,
    as_pattern,
    measure_all,
    relative_to,
)
from blogdata.patterns.ingestion.landed_links import StrayLink, leading_out
from blogdata.patterns.ingestion.log_splitter import UNENDED, unsplit_logs
from blogdata.patterns.ingestion.readiness_marker import scan
from blogdata.publish.audit import FileFigures
from blogdata.publish.partitions import Grain, start_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "raw BINARY, source_offset BIGINT"
MISNAMED = "misnamed"
"""Key in the notes of a batch's commit: its files in a folder whose name is not an hour."""
LINKS = "links"
"""Key in the notes of a batch's commit: its links that lead out of the landing zone, each with its target."""
OTHERS = "others"
"""Key of what is left out: files that the batch datasets read and that have none of the stream's suffixes."""
_LOG = "log"
_FOR_EVER = "36500d"
_NAMED = 5
_NOTHING = LandedSize(lines=0, bytes=0)


class LandedFileGone(PlatformError):
    """Raised when a file of a planned batch no longer exists when the batch is processed."""


@dataclass(frozen=True, kw_only=True)
class BatchFile:
    """A file of a batch.

    Args:
        hour: Arrival hour, from its folder; None if the folder's name is not an hour, or the file is not read.
        size: Its lines and bytes, counted without Spark.
        link: The link on its path that leads out of the landing zone, or that it is no file, so that it is not read;
            None for a file that is read.
    """

    name: str
    hour: str | None
    size: LandedSize
    link: StrayLink | Obstacle | None = None

    @property
    def is_replay(self) -> bool:
        """Whether it is a corrected dead letter."""
        return Path(self.name).name.startswith(REPLAY_PREFIX)


@dataclass(frozen=True, kw_only=True)
class StreamedFiles:
    """The files of a landed table, in folders by arrival hour, streamed in the order in which they came.

    A file is read once, when it is first seen: a producer must write under a hidden name and rename.
    """

    table: str
    suffixes: tuple[str, ...]
    files_per_batch: int = 200

    def checkpoint_properties(self, landing: Path) -> Mapping[str, str]:
        """Return the properties of the source that a checkpoint depends on."""
        return {"kind": "files", "place": str(landing / self.table), "suffixes": " ".join(self.suffixes)}

    def lines(self, spark: SparkSession, landing: Path, bounds: Bounds) -> DataFrame:
        """Open the stream, with columns raw, source_offset and source_file (relative to the landing zone).

        Lines that were erased are none of it.
        """
        reader = (
            spark.readStream.format("lines")
            .schema(SCHEMA)
            # Spark takes a hidden name with an equals sign for that of a partition.
            .option("pathGlobFilter", "[^_.]*{" + ",".join(self.suffixes) + "}")
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", str(self.files_per_batch))
            # By default Spark silently skips files that are a week older than the newest one it has seen.
            .option("maxFileAge", _FOR_EVER)
            .option(WITHIN, str(landing))
            .option(LONGEST, str(bounds.longest_line))
        )
        # A glob pattern may match nothing yet; a plain folder would have to exist.
        frame = reader.load(f"{as_pattern(landing / self.table)}/date=*/hour=*")
        kept = frame.where(is_kept())
        return kept.select("raw", "source_offset", relative_to(landing).alias("source_file"))

    def pending_input(self, checkpoint: Checkpoint | None, landing: Path) -> list[str]:
        """List what a query would ingest first, without Spark; the list changes when that input changes.

        Args:
            checkpoint: Checkpoint of the stream; None if it has none.

        Returns:
            The files of an uncommitted batch, each with its size and modification time, if there are any; otherwise the
            paths of the files that are in no batch yet.

        Raises:
            CheckpointDamaged: A checkpoint file is not what Spark wrote.
        """
        if checkpoint is not None and (unfinished := checkpoint.unfinished()):
            return [f"{path} {_state(Path(path))}" for path in unfinished]
        seen = checkpoint.every_file() if checkpoint is not None else frozenset()
        there = {str(file) for file in self._files(landing)}
        return sorted(there - seen)

    def unread(self, checkpoint: Checkpoint, landing: Path) -> list[Path]:
        """List the landed files that no committed batch contains, without Spark.

        Raises:
            CheckpointDamaged: A checkpoint file is not what Spark wrote.
        """
        read = checkpoint.every_file() - set(checkpoint.unfinished())
        return sorted(file for file in self._files(landing) if str(file) not in read)

    def left_out(self, landing: Path) -> dict[str, list[str]]:
        """List the landed files and links whose lines are in no batch.

        Returns:
            The files in folders whose name is not an hour, relative to the landing zone (:data:`MISNAMED`), and the
            links that are not followed and the entries that cannot be read (:data:`LINKS`), and the files with another
            suffix, except access logs (:data:`OTHERS`).
        """
        hours = scan(landing / self.table, Grain.HOUR)
        names = [str((hour.folder / file.name).relative_to(landing)) for hour in hours for file in hour.files]
        misnamed = [name for name in names if name.endswith(self.suffixes) and arrival_hour(name) is None]
        links = [str(link) for hour in hours for link in hour.links]
        others = [name for name in names if not name.endswith(self.suffixes) and self._is_meant(name)]
        return {MISNAMED: sorted(misnamed), LINKS: sorted(links), OTHERS: sorted(others)}

    def _is_meant(self, name: str) -> bool:
        """Return whether a file of the table would be read if its name had one of the suffixes."""
        return extension(name) != _LOG

    def in_hours(self, landing: Path, hours: Collection[str]) -> list[Path]:
        """List the landed files of some hours of arrival."""
        return [
            file
            for file in self._files(landing, min(hours, default=""))
            if arrival_hour(f"{file.relative_to(landing)}") in hours
        ]

    def _files(self, landing: Path, since: str = "") -> Iterator[Path]:
        for hour in scan(landing / self.table, Grain.HOUR, since=since):
            yield from (hour.folder / file.name for file in hour.files if file.name.endswith(self.suffixes))

    def batch_files(
        self, checkpoint: Checkpoint, batch: int, landing: Path, bounds: Bounds, *, at: int = 0
    ) -> Sequence[BatchFile]:
        """List the files of a batch from the checkpoint, and count their lines and bytes.

        Raises:
            CheckpointDamaged: The batch is not recorded, or a checkpoint file is not what Spark wrote.
            LandedFileGone: A file no longer exists.
            LandedFileUnreadable: A file is truncated or corrupt, or may not be read.
            LandedFileRefused: The format of a file is not read, or it exceeds the bounds.
        """
        paths = [Path(path) for path in checkpoint.files(batch, at)]
        links = {path: link for path in paths if (link := leading_out(path, landing) or irregular(path))}
        read = [path for path in paths if path not in links]
        try:
            sizes = dict(zip(read, measure_all(read, landing, bounds), strict=True))
        except LandedFileVanished as error:
            raise LandedFileGone(
                what="a landed file that belongs to a batch is gone",
                where=error.where,
                next_step=Remedy(
                    "put it back, or begin a new checkpoint, which goes on without it: ",
                    RunStream(name=checkpoint.stream, new_checkpoint=True),
                ),
            ) from error
        return [
            BatchFile(
                name=(name := str(path.relative_to(landing))),
                hour=None if path in links else arrival_hour(name),
                size=sizes.get(path, _NOTHING),
                link=links.get(path),
            )
            for path in paths
        ]


class StreamedLogs(StreamedFiles):
    """The files of access logs of a landed table; those that :mod:`.log_splitter` makes, and what a producer landed.

    The begin of a last line, which has not ended, is read when the line has.
    """

    def pending_input(self, checkpoint: Checkpoint | None, landing: Path) -> list[str]:
        """List what a query would ingest first, as the other files; logs that are not split yet are among it."""
        return [*super().pending_input(checkpoint, landing), *(str(log) for log in unsplit_logs(landing))]

    def _is_meant(self, name: str) -> bool:
        return extension(name) == _LOG and not name.endswith(UNENDED)


def without(lines: DataFrame, names: Collection[str]) -> DataFrame:
    """Remove the lines of the named files from a frame."""
    from pyspark.sql import functions as F

    return lines.where(~F.col("source_file").isin(*sorted(names))) if names else lines


def left_out_notes(files: Sequence[BatchFile]) -> dict[str, list[str]]:
    """Build the commit notes that list the files and links left out of a batch."""
    return {
        MISNAMED: sorted(file.name for file in files if file.hour is None and file.link is None),
        LINKS: sorted({str(file.link) for file in files if file.link is not None}),
    }


def left_out_in(commits: Iterable[Commit]) -> dict[str, list[str]]:
    """Collect the left-out :data:`MISNAMED` files and :data:`LINKS` from the notes of batch commits."""
    notes = [commit.info["appended"]["notes"] for commit in commits]
    found = {kind: sorted({one for note in notes for one in note.get(kind, ())}) for kind in (MISNAMED, LINKS)}
    return {kind: names for kind, names in found.items() if names}


def left_out_warnings(left_out: Mapping[str, Sequence[str]]) -> list[str]:
    """Build the warnings for the files and links that are not ingested, each with the remedy."""
    warnings = []
    if files := left_out.get(MISNAMED):
        warnings.append(
            f"{len(files)} files lie in folders whose names are no hour, and are not taken in: {_first(files)}; "
            "move them into date=YYYY-MM-DD/hour=HH"
        )
    if links := left_out.get(LINKS):
        warnings.append(
            f"{len(links)} links are not followed or entries not read, and nothing is taken in through them: "
            f"{_first(links)}; land the data themselves, under another name"
        )
    if others := left_out.get(OTHERS):
        warnings.append(
            f"{len(others)} files have an ending that is not streamed, and are in the batch datasets only: "
            f"{_first(others)}; let their names end in .json or .json.gz, whatever compresses them, or in .log"
        )
    return warnings


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(shown.line, names[:_NAMED])) + more


def by_hour(files: Sequence[BatchFile]) -> dict[str, LandedSize]:
    """Sum the lines and bytes of files by arrival hour; files without an hour are skipped."""
    sums: dict[str, LandedSize] = {}
    for file in files:
        if file.hour is not None:
            sums[file.hour] = sums.get(file.hour, _NOTHING) + file.size
    return sums


def figures_by_hour(files: Sequence[BatchFile]) -> dict[str, dict[str, FileFigures]]:
    """Map each arrival hour to its files' rows and their bytes; files without an hour are skipped."""
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
