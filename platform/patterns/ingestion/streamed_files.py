"""A folder of landed files as the source of a stream: its lines, and what of them a batch must have.

Another source, such as a topic of a broker, is another class with the same three methods.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patterns.core.errors import ConfigurationError, PlatformError
from patterns.core.partitions import Grain, start_of
from patterns.error_management.checkpointer import Checkpoint
from patterns.ingestion.landed_lines import LandedSize, measure_all, relative_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "raw BINARY, source_offset BIGINT"
_FOR_EVER = "36500d"


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

    def unseen(self, checkpoint: Checkpoint | None, landing: Path) -> list[str]:
        """Give the paths of the landed files that are in no batch yet, without Spark.

        Args:
            checkpoint: Of the stream; None when it has none.
            landing: The landing zone.

        Raises:
            CheckpointDamaged: The checkpoint does not say.
        """
        seen = checkpoint.every_file() if checkpoint is not None else frozenset()
        files = (landing / self.table).glob("date=*/hour=*/*")
        there = {str(file) for file in files if file.name.endswith(self.suffixes) and file.name[0] not in "._"}
        return sorted(there - seen)

    def taken(self, checkpoint: Checkpoint, batch: int, landing: Path) -> Sequence[LandedFile]:
        """Give the files a batch is made of, by the checkpoint, and count what is in them.

        Args:
            checkpoint: Of the stream.
            batch: The number of the batch.
            landing: The landing zone.

        Raises:
            CheckpointDamaged: The checkpoint does not say.
            LandedFileGone: A file is not there any more.
        """
        paths = [Path(path) for path in checkpoint.files(batch)]
        try:
            sizes = measure_all(paths)
        except FileNotFoundError as error:
            raise LandedFileGone(
                what="a landed file that belongs to a batch is gone",
                where=str(error.filename),
                next_step="put it back, or begin a new checkpoint, which goes on without it: blogdata stream "
                f"{checkpoint.stream} --new-checkpoint",
            ) from error
        return [
            LandedFile(name=str(path.relative_to(landing)), hour=_hour(path), size=size)
            for path, size in zip(paths, sizes, strict=True)
        ]


def without(lines: DataFrame, names: Collection[str]) -> DataFrame:
    """Leave out the lines of some files."""
    from pyspark.sql import functions as F

    return lines.where(~F.col("source_file").isin(*sorted(names))) if names else lines


def by_hour(files: Sequence[LandedFile]) -> dict[str, LandedSize]:
    """Add up what some files hold by hour of arrival."""
    sums: dict[str, LandedSize] = {}
    for file in files:
        if file.hour is not None:
            held = sums.get(file.hour, LandedSize(lines=0, bytes=0))
            sums[file.hour] = LandedSize(lines=held.lines + file.size.lines, bytes=held.bytes + file.size.bytes)
    return sums


def _hour(path: Path) -> str | None:
    day, hour = path.parent.parent.name.removeprefix("date="), path.parent.name.removeprefix("hour=")
    key = f"{day}T{hour}"
    try:
        start_of(key, Grain.HOUR)
    except ConfigurationError:
        return None
    return key if len(key) == len("2026-01-05T00") else None
