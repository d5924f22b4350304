"""A folder of landed files as the source of a stream: its lines, and what of them a batch must have.

Another source, such as a topic of a broker, is another class with the same methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patterns.core.commit import Commit
from patterns.core.errors import ConfigurationError, PlatformError
from patterns.core.partitions import Grain, start_of
from patterns.core.store_faults import LandedFileVanished
from patterns.error_management.checkpointer import Checkpoint
from patterns.ingestion.landed_lines import REPLAY_PREFIX, LandedSize, measure_all, relative_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "raw BINARY, source_offset BIGINT"
MISNAMED = "misnamed"
"""Note of a batch's commit: its files whose folder's name is no hour."""
_FOR_EVER = "36500d"
_NAMED = 5


class LandedFileGone(PlatformError):
    """A file was taken away between the plan of a batch and its work."""


@dataclass(frozen=True, kw_only=True)
class LandedFile:
    """A file of a batch.

    Args:
        name: Relative to the landing zone.
        hour: Hour of arrival, from its folder; None when the folder's name is no hour.
        size: What it holds, counted without Spark.
    """

    name: str
    hour: str | None
    size: LandedSize

    @property
    def is_replay(self) -> bool:
        """Whether it is a corrected dead letter."""
        return Path(self.name).name.startswith(REPLAY_PREFIX)


@dataclass(frozen=True, kw_only=True)
class StreamedFiles:
    """The files of a landed table, by hour of arrival, in the order in which they came.

    Files are read once, when they are first seen: a producer writes under a hidden name and renames.

    Args:
        table: Folder in the landing zone.
        suffixes: Files with these endings are input.
        files_per_batch: Most files of a batch.
    """

    table: str
    suffixes: tuple[str, ...]
    files_per_batch: int = 200

    def facts(self, landing: Path) -> Mapping[str, str]:
        """Give what must stay as it is for a checkpoint to fit."""
        return {"kind": "files", "place": str(landing / self.table), "suffixes": " ".join(self.suffixes)}

    def lines(self, spark: SparkSession, landing: Path) -> DataFrame:
        """Open the stream: raw, source_offset, source_file (relative to the landing zone).

        Args:
            spark: The session, on a server that has the engine's jar.
            landing: The landing zone.
        """
        reader = (
            spark.readStream.format("lines")
            .schema(SCHEMA)
            .option("pathGlobFilter", "*{" + ",".join(self.suffixes) + "}")
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", str(self.files_per_batch))
            # By default Spark leaves out, in silence, what is a week older than the newest file it has seen.
            .option("maxFileAge", _FOR_EVER)
        )
        # A pattern may match nothing yet; a folder would have to be there.
        frame = reader.load(str(landing / self.table / "date=*" / "hour=*"))
        return frame.select("raw", "source_offset", relative_to(landing).alias("source_file"))

    def waiting(self, checkpoint: Checkpoint | None, landing: Path) -> list[str]:
        """Say what a query would take in first, without Spark; it says something else when that has changed.

        Args:
            checkpoint: Of the stream; None when it has none.
            landing: The landing zone.

        Returns:
            The files of a batch that is not done, as they are on disk; else the paths of those in no batch yet.

        Raises:
            CheckpointDamaged: The checkpoint does not say.
        """
        if checkpoint is not None and (unfinished := checkpoint.unfinished()):
            return [f"{path} {_state(Path(path))}" for path in unfinished]
        seen = checkpoint.every_file() if checkpoint is not None else frozenset()
        there = {str(file) for file in (landing / self.table).glob("date=*/hour=*/*") if self._is_input(file)}
        return sorted(there - seen)

    def misnamed(self, landing: Path) -> list[str]:
        """Give the landed files whose folder's name is no hour, relative to the landing zone: no batch has their lines.

        Args:
            landing: The landing zone.
        """
        folders = (landing / self.table).glob("date=*/hour=*")
        strange = [file for folder in folders if _hour(folder) is None for file in folder.iterdir()]
        return sorted(str(file.relative_to(landing)) for file in strange if self._is_input(file))

    def _is_input(self, file: Path) -> bool:
        return file.name.endswith(self.suffixes) and file.name[0] not in "._"

    def taken(self, checkpoint: Checkpoint, batch: int, landing: Path) -> Sequence[LandedFile]:
        """Give the files a batch is made of, by the checkpoint, and count what is in them.

        Args:
            checkpoint: Of the stream.
            batch: The number of the batch.
            landing: The landing zone.

        Raises:
            CheckpointDamaged: The checkpoint does not say.
            LandedFileGone: A file is not there any more.
            LandedFileUnreadable: A file is torn or garbled, or may not be read.
        """
        paths = [Path(path) for path in checkpoint.files(batch)]
        try:
            sizes = measure_all(paths)
        except LandedFileVanished as error:
            raise LandedFileGone(
                what="a landed file that belongs to a batch is gone",
                where=error.where,
                next_step="put it back, or begin a new checkpoint, which goes on without it: blogdata stream "
                f"{checkpoint.stream} --new-checkpoint",
            ) from error
        return [
            LandedFile(name=str(path.relative_to(landing)), hour=_hour(path.parent), size=size)
            for path, size in zip(paths, sizes, strict=True)
        ]


def without(lines: DataFrame, names: Collection[str]) -> DataFrame:
    """Leave out the lines of some files."""
    from pyspark.sql import functions as F

    return lines.where(~F.col("source_file").isin(*sorted(names))) if names else lines


def misnamed_in(commits: Iterable[Commit]) -> list[str]:
    """Give the files whose lines some batches have left out, because their folder's name is no hour."""
    return sorted({file for commit in commits for file in commit.info["appended"]["notes"].get(MISNAMED, ())})


def told_misnamed(files: Sequence[str]) -> str:
    """Say that files are not taken in, and what to do about it."""
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return (
        f"{len(files)} files lie in folders whose names are no hour, and are not taken in: "
        f"{', '.join(files[:_NAMED])}{more}; move them into date=YYYY-MM-DD/hour=HH"
    )


def by_hour(files: Sequence[LandedFile]) -> dict[str, LandedSize]:
    """Add up what some files hold by hour of arrival."""
    sums: dict[str, LandedSize] = {}
    for file in files:
        if file.hour is not None:
            held = sums.get(file.hour, LandedSize(lines=0, bytes=0))
            sums[file.hour] = LandedSize(lines=held.lines + file.size.lines, bytes=held.bytes + file.size.bytes)
    return sums


def _hour(folder: Path) -> str | None:
    key = f"{folder.parent.name.removeprefix('date=')}T{folder.name.removeprefix('hour=')}"
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
