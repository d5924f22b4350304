"""The inputs of a write: its target (lake, contract, run), how it changes the table, its provenance and companions."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Account, Added, Execution, FileFigures
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


READ = "read"
"""Key in the notes of an appended batch: its source outside the lake, e.g. `landing.visits`."""


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """Replace the rows of some partitions, or of the whole table."""


@dataclass(frozen=True, kw_only=True)
class Extend(Overwrite):
    """Replace the rows of some partitions, and only add rows to others; refused if the table has changed since."""

    kept: tuple[str, ...]
    """Partitions, among those of the batch, whose rows stay beside the new ones; they are audited together."""
    at: int


@dataclass(frozen=True, kw_only=True)
class Rewrite(Overwrite):
    """Replace all rows by rows computed from them; refused if the table's rows have changed since."""

    at: int


@dataclass(frozen=True, kw_only=True)
class Exchange(Rewrite):
    """Replace the rows of some files by rows computed from them; all others of the table stay."""

    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AppendBatch:
    """Append one batch of a stream, exactly once, whichever run writes it."""

    stream: str
    """Name of the stream, under which Delta keeps its progress; its batches come in order."""
    batch: int
    turn: int | None = None
    """Number of the batch among all batches of the table, of any stream. The write is refused if another batch has
    taken that number. None: other batches do not matter."""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def writer_id(self, dataset: str) -> str:
        return f"{dataset}/{self.stream}"

    def commit_id(self, dataset: str) -> str:
        return f"{self.writer_id(dataset)}/{self.batch}"


Change = Overwrite | AppendBatch


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The run that produces a commit."""

    run_id: str
    job: str
    code_version: str
    trigger: str = "manual"
    """What started the run: `manual`, or the name of a sensor, schedule, backfill or event from outside."""
    attempt: int = 1
    event: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Target:
    """The table, contract and run of a write."""

    lake: Lake
    contract: Contract
    run: RunContext
    probe: str | None = None
    """Folder through which a test steps a write through its phases; None in real use."""
    lifted: frozenset[str] = frozenset()
    may_read: frozenset[str] | None = None
    """Datasets of the lake that the rows may be computed from; None: any."""


class Probe:
    """Lets a test step a write through its phases, by the files `<phase>.reached`, `.hold` and `.fail` of a folder."""

    def __init__(self, folder: str | None, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix

    def reached(self, name: str) -> None:
        if self._folder is None:
            return
        phase, folder = f"{self._prefix}{name}", Path(self._folder)
        reached = folder / f"{phase}.reached"
        if reached.exists():
            # Only the first attempt of a repeated write is stepped through.
            return
        reached.touch()
        while (folder / f"{phase}.hold").exists():
            time.sleep(0.02)
        if (folder / f"{phase}.fail").exists():
            raise RuntimeError(f"the write was ended at {phase}")


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Rows of a companion table, published with those of the fact for the same partitions (Transactional Writer)."""

    contract: Contract
    frame: DataFrame
    """All its rows for the partitions; evaluated only if there are any."""
    counted_measure: str
    kept_measure: str
    dropped_reason: str


@dataclass(frozen=True, kw_only=True)
class Additions:
    """The partitions of a batch to which rows are only added; all others are replaced."""

    at: int = -1
    of: Mapping[str, Added] = field(default_factory=dict)
    again: Mapping[str, Added] = field(default_factory=dict)
    """Of the others, those that only get rows, too; but rows that were there are written again."""

    @property
    def all(self) -> Mapping[str, Added]:
        """What the commit notes of its partitions, for those who read them by slices."""
        return {**self.of, **self.again}

    def rewriting(self, keys: Collection[str]) -> Additions:
        again = {key: replace(added, times=0, rewritten=True) for key, added in self.of.items() if key in keys}
        left = self.without(keys)
        return replace(left, again={**self.again, **again})

    def without(self, keys: Collection[str]) -> Additions:
        left = [{key: added for key, added in some.items() if key not in keys} for some in (self.of, self.again)]
        return replace(self, of=left[0], again=left[1])


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The inputs from which the rows were computed, and the figures they must match."""

    inputs: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, FileFigures]] = field(default_factory=dict)
    """Partition to landed file to its lines and bytes, which its rows must have; empty if no landed files are read."""
    landed: Mapping[str, str] = field(default_factory=dict)
    execution: Execution | None = None
    judged_by: Mapping[str, str] = field(default_factory=dict)
    additions: Additions = field(default_factory=Additions)
    refreshed: str = ""
    """How much of a materialized view was computed, and why, in words; empty for other datasets."""
