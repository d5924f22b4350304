"""The landed partitions a step reads: their files, their sizes, and their lines as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import WHOLE_TABLE, Account
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing import readiness_marker, vanished_lines
from blogdata.landing.full_loader import ACCEPT_SIZE
from blogdata.landing.lines import Bounds, LineReader, read
from blogdata.landing.readiness_marker import LandedPartition
from blogdata.landing.sizes import LandedSize, judge_all
from blogdata.landing.suppression_list import erase_known
from blogdata.planning.reach import delivered_on
from blogdata.runs.step import Step, Upstream
from blogdata.table.audit import FileFigures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERASED = "erased"
"""Reason of landed lines that are no rows any more, since they were those of a person who was forgotten."""


@dataclass(frozen=True)
class Landed:
    """Complete partitions of a landed table, as one step reads them."""

    step: Step
    partitions: Mapping[str, LandedPartition]
    grain: Grain

    @classmethod
    def of(cls, step: Step, table: str, grain: Grain, keys: Sequence[str] | None = None) -> Landed:
        """Find partitions in the landing zone: those of `keys`, or the step's own without it."""
        step.reach.require_read(f"landing.{table}")
        wanted = step.partitions if keys is None else keys
        partitions = _scanned(step, table, grain, wanted)
        for partition in partitions:
            if partition.links and (within := [key for key in wanted if key.startswith(partition.key)]):
                raise _blamed(partition.links[0].refusal(), within)
        ready = {partition.key: partition for partition in partitions if partition.ready}
        if absent := [key for key in wanted if key not in ready]:
            missing = PlatformError(
                what=f"{len(absent)} partition(s) have not landed, or are not complete yet: {', '.join(absent[:5])}",
                where=str(step.landing / table),
                next_step=Remedy("wait for the producer, or run only what has landed: ", Run()),
            )
            raise _blamed(missing, absent)
        return cls(step=step, partitions={key: ready[key] for key in wanted}, grain=grain)

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        return {key: [part.folder / file.name for file in part.files] for key, part in self.partitions.items()}

    @cached_property
    def measured(self) -> dict[str, dict[str, LandedSize]]:
        """Lines and bytes of each file, by partition, counted without Spark; all files are judged."""
        landing = self.step.landing
        files = [file for of in self._files.values() for file in of]
        judged = dict(zip(files, judge_all(files, landing, self.bounds), strict=True))
        sizes: dict[str, dict[str, LandedSize]] = {key: {} for key in self._files}
        faults: dict[str, PlatformError] = {}
        for key, of in self._files.items():
            for file in of:
                size = judged[file]
                if isinstance(size, LandedSize):
                    sizes[key][str(file.relative_to(landing))] = size
                elif size.transient:
                    raise _blamed(size, [key])
                else:
                    faults.setdefault(key, size)
        if faults:
            error = _blamed(next(iter(faults.values())), list(faults))
            error.by_partition = faults
            raise error
        return sizes

    @cached_property
    def bounds(self) -> Bounds:
        return Bounds.of(self.step.deployment.settings())

    def line_count(self, key: str) -> int:
        return sum(size.lines for size in self.measured[key].values())

    def rows(self, reader: LineReader) -> DataFrame:
        """Read the lines; columns: those of :data:`blogdata.landing.lines.POSITION`, and those of the reader."""
        return read(self.step.spark, self.step.landing, self._files, reader, self.bounds)

    def source(self) -> Upstream:
        """Return what a publication of the partitions is audited against: lines, bytes, and files with their times."""
        self.require_published_lines()
        return Upstream(accounts=self.accounts(), files=self.files(), landed=self.states())

    def require_published_lines(self) -> None:
        """Refuse partitions with published lines that have not landed any more, unless a person has accepted that."""
        if ACCEPT_SIZE in self.step.accepted:
            return
        contract = self.step.contract
        published = self.step.events.publications(contract.dataset)
        losses = []
        for key in self.partitions:
            entry = published.get(WHOLE_TABLE if contract.partitioning is None else key)
            if entry is None or readiness_marker.is_published(self.partitions[key], entry.landed):
                continue
            if entry.partition == WHOLE_TABLE and delivered_on(entry) != key:
                # It was made from another day's delivery.
                continue
            lake = self.step.lake
            try:
                loss = vanished_lines.loss(
                    key,
                    vanished_lines.published_sizes(lake, contract, key),
                    {name: size.lines for name, size in self.measured[key].items()},
                    published_lines=partial(vanished_lines.published_lines, lake, contract, key),
                    landed_lines=partial(vanished_lines.landed_lines, self._files[key], self.step.landing),
                )
            except PlatformError as error:
                raise _blamed(error, [key]) from error.__cause__
            losses += [loss] if loss else []
        if losses:
            raise vanished_lines.refusal(losses, where=contract.dataset)

    def accounts(self) -> dict[str, Account]:
        """Return the lines per partition, counted independently of Spark, and how many of them were erased."""
        erased = {key: sum(size.erased for size in sizes.values()) for key, sizes in self.measured.items()}
        reasons = {key: {ERASED: lines} if lines else {} for key, lines in erased.items()}
        return {key: Account(rows_in=self.line_count(key), reasons=reasons[key]) for key in erased}

    def files(self) -> dict[str, dict[str, FileFigures]]:
        """Return the rows of each file, and their bytes; a line that lost a byte is as wrong as a lost line."""
        return {key: {file: size.of_rows for file, size in sizes.items()} for key, sizes in self.measured.items()}

    def states(self) -> dict[str, str]:
        return {key: partition.fingerprint for key, partition in self.partitions.items()}


def _scanned(step: Step, table: str, grain: Grain, wanted: Sequence[str]) -> list[LandedPartition]:
    """Find the partitions from the first wanted one on; the wanted ones have no line of a forgotten person any more."""
    personal = any(column.subject for column in step.contract.columns)
    while True:
        # The recorded state is older than a search without a match: the next one sees a line that comes later.
        partitions = step.landing_zone.scan(table, grain, since=min(wanted))
        ready = [part for part in partitions if part.ready and part.key in wanted]
        files = [part.folder / file.name for part in ready for file in part.files]
        if not (personal and erase_known(step.deployment.settings(), step.landing, files)):
            return partitions


def _blamed(error: PlatformError, keys: Sequence[str]) -> PlatformError:
    """Attach the failed partitions to an error, so that the others can be computed without them."""
    error.partitions = frozenset(keys)
    return error


def newest_day(deliveries: Sequence[LandedPartition], folder: Path) -> str:
    if not deliveries:
        raise PlatformError(
            what=f"no complete delivery of {folder.name} has landed",
            where=str(folder),
            next_step="put a delivery into date=YYYY-MM-DD/, a day until today, and write _SUCCESS last",
        )
    return max(delivery.key for delivery in deliveries)
