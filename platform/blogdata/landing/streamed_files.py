"""A folder of landed files as the source of a stream: its lines, and the files and sizes that each batch must have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.contract.partitions import Grain
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.landing.lines import Bounds, LineReader, is_inside, read_listed
from blogdata.landing.readiness_marker import scan, start_of_key
from blogdata.landing.sizes import LandedSize, measure_all
from blogdata.table.audit import FileFigures
from blogdata.table.faults import LandedFileVanished

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "raw BINARY, source_offset BIGINT"
_LISTED = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_FOR_EVER = "36500d"


@dataclass(frozen=True, kw_only=True)
class BatchFile:
    name: str
    hour: str
    size: LandedSize


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

    def unread(self, read: Set[str], landing: Path) -> list[Path]:
        """List the landed files but those that were read, without Spark."""
        hours = scan(landing / self.table, Grain.HOUR)
        files = (hour.folder / file.name for hour in hours for file in hour.files if file.name.endswith(self.suffixes))
        return sorted(file for file in files if str(file) not in read)

    def batch_files(self, paths: Iterable[str], landing: Path, bounds: Bounds, *, stream: str) -> Sequence[BatchFile]:
        """List the files of a batch of a stream, and count their lines and bytes.

        Those that are not read are left out: links out of the landing zone, and files in a folder that is no hour.
        """
        hours = {
            path: hour
            for path in map(Path, paths)
            if is_inside(path, landing) and (hour := arrival_hour(str(path.relative_to(landing)))) is not None
        }
        try:
            sizes = dict(zip(hours, measure_all([*hours], landing, bounds), strict=True))
        except LandedFileVanished as error:
            raise PlatformError(
                what="a landed file that belongs to a batch is gone",
                where=error.where,
                next_step=Remedy(
                    "put it back, or begin a new checkpoint, which goes on without it: ",
                    RunStream(name=stream, new_checkpoint=True),
                ),
            ) from error
        return [
            BatchFile(name=str(path.relative_to(landing)), hour=hour, size=sizes[path]) for path, hour in hours.items()
        ]


def _pattern(path: Path) -> str:
    """Return the pattern by which Spark's own sources find exactly this path; they take every path for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))


def by_hour(files: Sequence[BatchFile]) -> dict[str, LandedSize]:
    sums: dict[str, LandedSize] = defaultdict(lambda: LandedSize(lines=0, bytes=0))
    for file in files:
        sums[file.hour] += file.size
    return dict(sums)


def figures_by_hour(files: Sequence[BatchFile]) -> dict[str, dict[str, FileFigures]]:
    figures: dict[str, dict[str, FileFigures]] = defaultdict(dict)
    for file in files:
        figures[file.hour][file.name] = file.size.of_rows
    return dict(figures)


def arrival_hour(name: str) -> str | None:
    """Return the arrival hour of a file, by its name relative to the landing zone; it may lie deeper in the folder."""
    _, day, hour, *_ = [*name.split("/"), "", ""]
    key = f"{day.removeprefix('date=')}T{hour.removeprefix('hour=')}"
    return key if start_of_key(key, Grain.HOUR) else None
