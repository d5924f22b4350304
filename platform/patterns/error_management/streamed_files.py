"""A folder of landed files as the source of a stream: its lines, and what of them a batch must have.

Another source, such as a topic of a broker, is another class with the same methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from errors import ConfigurationError, PlatformError
from lake.commit import Commit
from lake.store_faults import LandedFileVanished
from patterns.error_management.checkpointer import Checkpoint
from patterns.ingestion.landed_lines import REPLAY_PREFIX, WITHIN, LandedSize, measure_all, relative_to
from patterns.ingestion.landed_links import StrayLink, leading_out
from patterns.ingestion.readiness_marker import scan
from publish.partitions import Grain, start_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "raw BINARY, source_offset BIGINT"
MISNAMED = "misnamed"
"""Note of a batch's commit: its files whose folder's name is no hour."""
LINKS = "links"
"""Note of a batch's commit: its links that lead out of the landing zone, each with where it leads."""
_FOR_EVER = "36500d"
_NAMED = 5
_NOTHING = LandedSize(lines=0, bytes=0)


class LandedFileGone(PlatformError):
    """A file was taken away between the plan of a batch and its work."""


@dataclass(frozen=True, kw_only=True)
class LandedFile:
    """A file of a batch.

    Args:
        name: Relative to the landing zone.
        hour: Hour of arrival, from its folder; None when the folder's name is no hour, or nothing is read of it.
        size: What it holds, counted without Spark.
        link: The link on its path that leads out of the landing zone, so that nothing is read of it; None without one.
    """

    name: str
    hour: str | None
    size: LandedSize
    link: StrayLink | None = None

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
            .option(WITHIN, str(landing))
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
        there = {str(file) for file in self._files(landing)}
        return sorted(there - seen)

    def left_out(self, landing: Path) -> dict[str, list[str]]:
        """List what has landed and no batch has the lines of.

        Args:
            landing: The landing zone.

        Returns:
            The files whose folder's name is no hour, relative to the landing zone (:data:`MISNAMED`), and the links
            that lead out of it, each with where it leads (:data:`LINKS`).
        """
        misnamed = [str(file.relative_to(landing)) for file in self._files(landing) if _hour(file.parent) is None]
        links = [str(link) for hour in scan(landing / self.table, Grain.HOUR) for link in hour.links]
        return {MISNAMED: sorted(misnamed), LINKS: sorted(links)}

    def _files(self, landing: Path) -> Iterator[Path]:
        for hour in scan(landing / self.table, Grain.HOUR):
            yield from (hour.folder / file.name for file in hour.files if file.name.endswith(self.suffixes))

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
        links = {path: link for path in paths if (link := leading_out(path, landing))}
        read = [path for path in paths if path not in links]
        try:
            sizes = dict(zip(read, measure_all(read, landing), strict=True))
        except LandedFileVanished as error:
            raise LandedFileGone(
                what="a landed file that belongs to a batch is gone",
                where=error.where,
                next_step="put it back, or begin a new checkpoint, which goes on without it: blogdata stream "
                f"{checkpoint.stream} --new-checkpoint",
            ) from error
        return [
            LandedFile(
                name=str(path.relative_to(landing)),
                hour=None if path in links else _hour(path.parent),
                size=sizes.get(path, _NOTHING),
                link=links.get(path),
            )
            for path in paths
        ]


def without(lines: DataFrame, names: Collection[str]) -> DataFrame:
    """Leave out the lines of some files."""
    from pyspark.sql import functions as F

    return lines.where(~F.col("source_file").isin(*sorted(names))) if names else lines


def left_out_notes(files: Sequence[LandedFile]) -> dict[str, list[str]]:
    """Build the notes of a batch's commit on what is left out of it."""
    return {
        MISNAMED: sorted(file.name for file in files if file.hour is None and file.link is None),
        LINKS: sorted({str(file.link) for file in files if file.link is not None}),
    }


def left_out_in(commits: Iterable[Commit]) -> dict[str, list[str]]:
    """Collect from the notes of some batches what was left out of them: :data:`MISNAMED` files and :data:`LINKS`."""
    notes = [commit.info["appended"]["notes"] for commit in commits]
    found = {kind: sorted({one for note in notes for one in note.get(kind, ())}) for kind in (MISNAMED, LINKS)}
    return {kind: names for kind, names in found.items() if names}


def told_left_out(left_out: Mapping[str, Sequence[str]]) -> list[str]:
    """Say that files and links are not taken in, and what to do about each."""
    told = []
    if files := left_out.get(MISNAMED):
        told.append(
            f"{len(files)} files lie in folders whose names are no hour, and are not taken in: {_first(files)}; "
            "move them into date=YYYY-MM-DD/hour=HH"
        )
    if links := left_out.get(LINKS):
        told.append(
            f"{len(links)} links are not followed, and nothing is taken in through them: {_first(links)}; "
            "land the data themselves, under another name"
        )
    return told


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def by_hour(files: Sequence[LandedFile]) -> dict[str, LandedSize]:
    """Add up what some files hold by hour of arrival."""
    sums: dict[str, LandedSize] = {}
    for file in files:
        if file.hour is not None:
            held = sums.get(file.hour, _NOTHING)
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
