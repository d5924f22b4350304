"""The landed partitions a step reads: their files, their sizes, and their lines as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from errors import PlatformError
from errors.remedies import Remedy, Run
from evidence.new_fields import NewField, record
from lake.commit import Account
from orchestration.step import Source, Step
from patterns.ingestion import new_fields
from patterns.ingestion.landed_lines import LandedSize, measure_all, read
from patterns.ingestion.readiness_marker import LandedPartition
from publish.partitions import Grain
from publish.target import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION_PATTERNS = {
    Grain.HOUR: (r"date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/", "T"),
    Grain.DAY: (r"date=(\d{4}-\d{2}-\d{2})()/", ""),
}


class NotLanded(PlatformError):
    """Raised when a requested partition is missing in the landing zone, or not complete yet."""


@dataclass(frozen=True)
class Landed:
    """Complete partitions of a landed table, as one step reads them.

    Args:
        step: The step that reads them.
        partitions: Partitions by key.
        grain: Length of a partition.
    """

    step: Step
    partitions: Mapping[str, LandedPartition]
    grain: Grain

    @classmethod
    def of(cls, step: Step, table: str, grain: Grain, keys: Sequence[str] | None = None) -> Landed:
        """Find partitions in the landing zone: those of `keys`, or the step's own without it.

        Raises:
            LinkRefused: A partition is, or contains, a link that leads out of the landing zone.
            NotLanded: A partition has no folder, or is not complete.
        """
        wanted = step.partitions if keys is None else keys
        found = step.landing_zone.scan(table, grain, since=min(wanted))
        for partition in found:
            within = [key for key in wanted if key.startswith(partition.key)]
            if partition.links and within:
                raise _blamed(partition.links[0].refusal(), within)
        there = {partition.key: partition for partition in found if partition.ready}
        absent = [key for key in wanted if key not in there]
        if absent:
            missing = NotLanded(
                what=f"{len(absent)} partition(s) have not landed, or are not complete yet: {', '.join(absent[:5])}"
                + (" …" if len(absent) > 5 else ""),
                where=str(step.landing / table),
                next_step=Remedy("wait for the producer, or run only what has landed: ", Run()),
            )
            raise _blamed(missing, absent)
        return cls(step=step, partitions={key: there[key] for key in wanted}, grain=grain)

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        return {
            key: [partition.folder / file.name for file in partition.files]
            for key, partition in self.partitions.items()
        }

    @cached_property
    def sizes(self) -> dict[str, LandedSize]:
        """Lines and bytes of each partition, counted without Spark.

        Raises:
            PlatformError: A file cannot be read; the error names its partition.
        """
        files = [file for found in self._files.values() for file in found]
        try:
            measured = dict(zip(files, measure_all(files, self.step.landing), strict=True))
        except PlatformError as error:
            holders = [key for key, found in self._files.items() if error.where in map(str, found)]
            raise _blamed(error, holders) from error.__cause__
        return {
            key: LandedSize(
                lines=sum(measured[file].lines for file in found),
                bytes=sum(measured[file].bytes for file in found),
            )
            for key, found in self._files.items()
        }

    def lines(self) -> DataFrame:
        """Read the lines; columns: raw, source_offset, source_file (relative to the landing zone), partition."""
        from pyspark.sql import functions as F

        pattern, separator = PARTITION_PATTERNS[self.grain]
        files = [file for found in self._files.values() for file in found]
        frame = read(self.step.spark, self.step.landing, files, engine=self.step.engine is Engine.TRANSACTION)
        key = F.concat_ws(
            separator,
            F.regexp_extract("source_file", pattern, 1),
            F.regexp_extract("source_file", pattern, 2),
        )
        return frame.withColumn("partition", key)

    def announce_new_fields(self) -> None:
        """Record the fields that the producer began to send without announcing them, each once.

        Recorded before the lines are published: after a crash in between they are found known, and nothing is lost.

        Raises:
            PlatformError: A file cannot be read; the error names its partition.
        """
        contract = self.step.contract
        announced = [field for read in contract.reads for field in read.fields]
        found: dict[str, NewField] = {}
        for key, files in self._files.items():
            try:
                looked = new_fields.look(files, self.step.landing, announced)
            except PlatformError as error:
                raise _blamed(error, [key]) from error.__cause__
            for name, lines in looked.names.items():
                first = NewField(
                    dataset=contract.dataset,
                    name=name,
                    partition=key,
                    lines=lines,
                    looked_at=looked.lines,
                    seen_at=datetime.now(timezone.utc),
                )
                found.setdefault(name, first)
        record(self.step.events, list(found.values()), run_id=self.step.run.run_id)

    def source(self) -> Source:
        """Return what a publication of the partitions is audited against: their lines, bytes and fingerprints."""
        return Source(accounts=self.accounts(), expected=self.expected_bytes(), landed=self.fingerprints())

    def accounts(self) -> dict[str, Account]:
        """Return the number of lines per partition, counted independently of Spark."""
        return {key: Account(rows_in=size.lines) for key, size in self.sizes.items()}

    def expected_bytes(self) -> dict[str, dict[str, int]]:
        """Return the number of bytes per partition; a line that lost a byte is as wrong as a lost line."""
        return {key: {"bytes": size.bytes} for key, size in self.sizes.items()}

    def fingerprints(self) -> dict[str, str]:
        """Return the fingerprint of each partition's landed files."""
        return {key: partition.fingerprint for key, partition in self.partitions.items()}


def _blamed(error: PlatformError, keys: Sequence[str]) -> PlatformError:
    """Attach the failed partitions to an error, so that the others can be computed without them."""
    error.partitions = frozenset(keys)
    return error


def newest_day(deliveries: Sequence[LandedPartition], folder: Path) -> str:
    """Return the day of the newest delivery.

    Args:
        deliveries: The complete deliveries, without folders whose name is not a day or lies in the future.
        folder: Landing-zone folder of the deliveries, for the error.

    Raises:
        NotLanded: There is no complete delivery.
    """
    if not deliveries:
        raise NotLanded(
            what=f"no complete delivery of {folder.name} has landed",
            where=str(folder),
            next_step="put a delivery into date=YYYY-MM-DD/, a day until today, and write _SUCCESS last",
        )
    return max(delivery.key for delivery in deliveries)
