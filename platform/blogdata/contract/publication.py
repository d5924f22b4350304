"""A published commit and its ledger lines, read back from the metadata in the table's own log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any, TypeVar

FileFigures = tuple[int, int]
"""Lines of a landed file, and their bytes, each with a line feed."""
WHOLE_TABLE = ""
"""Partition key of a table without a partition column."""
EXPIRED = "expired"
"""Reason of rows that left a table because their retention has ended; also their name in commits and the event log."""
ROWS, PARTITION_ROWS = "dagster/row_count", "dagster/partition_row_count"
"""What Dagster calls the rows of a whole dataset, which its pages show as such, and those of a partition."""
ROWS_ADDED = "rows_added"
"""Metadata of a partition, or a table, to which rows were only added: their number."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """The rows of the layer above for a partition, and how many of them this dataset leaves out."""

    rows_in: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    makes_stale: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The execution a commit belongs to, for a table that is executed by period."""

    period: str
    onto: int
    restores: int | None = None
    """Earlier version into whose rows it is merged, -1 for none; None: those of `onto`."""


@dataclass(frozen=True, kw_only=True)
class Added:
    """How a publication only added rows to a partition, beside those that an earlier one had published."""

    after: int
    """Version since which the partition had those rows."""
    rows_before: int
    slices: Sequence[str]
    times: int
    """How often rows were added since the partition was written whole."""
    rewritten: bool = False
    """The commit wrote all of the partition: with the same rows, for those who read it by slices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of the ledger: a partition of a dataset as one commit published it."""

    dataset: str
    partition: str
    """For a table that is executed by period, the period."""
    version: int
    rows_in: int
    rows_out: int
    reasons: Mapping[str, int]
    measures: Mapping[str, Any] = field(default_factory=dict)
    breakdowns: Mapping[str, Mapping[tuple[str | None, ...], int]] = field(default_factory=dict)
    inputs: Mapping[str, int] = field(default_factory=dict)
    run_id: str = ""
    landed: str | None = None
    seconds: float = 0.0
    """Duration of the whole commit."""
    restored: int | None = None
    """Earlier version that an execution which ran again was merged into."""
    appended: bool = False
    """Only the rows that the commit added are counted, not all of the partition."""
    makes_stale: Sequence[str] = ()
    """Partitions of the dataset that became stale by the commit."""
    judged_by: Mapping[str, str] = field(default_factory=dict)
    """Versions of what else decided about the rows, such as a list of crawlers."""
    code_version: str = ""
    contract: str = ""
    """Digest of the contract under which it was published."""
    added: Added | None = None
    """The commit only added rows to the partition; all figures are of the whole partition nevertheless."""
    committed_at: datetime | None = None
    """None if it was read from the commit and not from the event log."""
    expired: int | None = None
    """Rows that left the table because its retention has ended; None while they are kept."""

    def after(self, earlier: Entry) -> Entry:
        """Return this line with the counts of an earlier one added; the measures stay this line's own."""
        return replace(
            self,
            rows_in=earlier.rows_in + self.rows_in,
            rows_out=earlier.rows_out + self.rows_out,
            reasons=_sum(earlier.reasons, self.reasons),
            breakdowns={
                name: _sum(earlier.breakdowns.get(name, {}), counts) for name, counts in self.breakdowns.items()
            },
        )

    @property
    def rows_written(self) -> int:
        """Rows that the commit wrote: all of the partition, or those that it added."""
        return self.rows_out - (self.added.rows_before if self.added and not self.added.rewritten else 0)

    @property
    def changed(self) -> int:
        """Version since which the partition has its rows: a publication that added none changed nothing."""
        return self.added.after if self.added and self.added.rows_before == self.rows_out else self.version

    @property
    def rows_kept(self) -> int:
        """Rows that it published and that have not left the table since."""
        return self.rows_out - (self.expired or 0)

    def settled(self) -> Entry:
        """Return the line as of now: rows that left the table are counted under the reason :data:`EXPIRED`."""
        if self.expired is None:
            return self
        return replace(self, rows_out=self.rows_kept, reasons=_sum(self.reasons, {EXPIRED: self.expired}))

    @property
    def missing(self) -> int:
        """Rows in minus all rows accounted for: 0 if none was lost or duplicated."""
        return self.rows_in - self.rows_out - sum(self.reasons.values())


def kept(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the lines of the partitions whose rows have not expired; only these can still be read."""
    return {partition: entry for partition, entry in entries.items() if entry.expired is None}


@dataclass(frozen=True, kw_only=True)
class Commit:
    dataset: str
    version: int
    entries: Mapping[str, Entry]
    info: Mapping[str, Any]
    repeated: bool = False

    @property
    def rows_out(self) -> int:
        return sum(entry.rows_out for entry in self.entries.values())

    def metadata(self, partition: str | None = None) -> dict[str, int | float | str | dict[str, Any]]:
        """Return the metadata of a materialization, for one partition or for all."""
        entries = list(self.entries.values()) if partition is None else [self.entries[partition]]
        reasons: Mapping[str, int] = reduce(_sum, (entry.reasons for entry in entries), {})
        figures: dict[str, int | float | str | dict[str, Any]] = {
            ROWS if partition is None else PARTITION_ROWS: sum(entry.rows_out for entry in entries),
            "rows_in": sum(entry.rows_in for entry in entries),
            "table_version": max((entry.version for entry in entries), default=self.version),
            **{f"rows/{reason}": rows for reason, rows in sorted(reasons.items())},
            **{f"judged_by/{name}": version for name, version in self.info.get("judged_by", {}).items()},
            **{name: self.info[name] for name in ("refreshed",) if name in self.info},
        }
        if len(entries) == 1 and (added := entries[0].added):
            figures[ROWS_ADDED] = entries[0].rows_written
            figures.update({"slices_added": ", ".join(added.slices)} if added.slices else {})
        if partition is not None:
            measures = entries[0].measures.items()
            figures.update({f"measure/{name}": value for name, value in measures if isinstance(value, int | float)})
        else:
            figures |= {name: int(self.info[name]) for name in ("files", "bytes")}
        return figures


def entries_of(dataset: str, version: int, info: Mapping[str, Any]) -> dict[str, Entry]:
    """Rebuild the ledger lines of a commit from its metadata, by partition."""
    entries = {}
    execution = info.get("execution")
    for measured, measures in info["measures"].items():
        account = info["accounts"].get(measured, {})
        partition = execution["period"] if execution else measured
        reasons = {str(reason): int(rows) for reason, rows in account.get("reasons", {}).items()}
        reasons.update({name: int(measures[f"reason.{name}"]) for name in info["reasons"]})
        entries[partition] = Entry(
            dataset=dataset,
            partition=partition,
            version=version,
            rows_in=int(account.get("rows_in", measures["accounted"])),
            rows_out=int(measures["rows"]),
            reasons=reasons,
            measures={name: measures[name] for name in info["own_measures"]},
            breakdowns={
                name: _breakdown(rows, partition, partitioned=bool(info["partition_column"]))
                for name, rows in info["breakdowns"].items()
            },
            inputs=info["inputs"],
            run_id=info["run"]["run_id"],
            landed=info.get("landed", {}).get(measured),
            restored=execution["restores"] if execution else None,
            appended="appended" in info,
            makes_stale=tuple(account.get("makes_stale", ())),
            judged_by=info.get("judged_by", {}),
            code_version=info["run"].get("code_version", ""),
            contract=info.get("contract", ""),
            added=added_of(info.get("added", {}).get(measured)),
        )
    return entries


def added_of(stored: Mapping[str, Any] | None) -> Added | None:
    return None if stored is None else Added(**{**stored, "slices": tuple(stored["slices"])})


_Key = TypeVar("_Key")


def _sum(left: Mapping[_Key, int], right: Mapping[_Key, int]) -> dict[_Key, int]:
    return {key: left.get(key, 0) + right.get(key, 0) for key in {**left, **right}}


_ROWS_KEPT = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})
COMPACTED = "compacted"
"""Key of the figures in the metadata of a compaction; it has no measures, so it is no publication."""


def keeps_rows(commit: Mapping[str, Any]) -> bool:
    """Return whether a commit, by its `commitInfo`, changes no row: it compacts, vacuums, freezes or removes files."""
    notes = [_parsed(commit.get("userMetadata"), name) for name in (COMPACTED, "frozen", "removed")]
    return commit.get("operation") in _ROWS_KEPT or any(note is not None for note in notes)


def parse(user_metadata: str | None) -> dict[str, Any] | None:
    """Parse a commit's user metadata; None if the platform did not publish rows with the commit."""
    return _parsed(user_metadata, "measures")


def parse_expiry(user_metadata: str | None) -> dict[str, Any] | None:
    """Parse the user metadata of a commit by which partitions left the table; None for any other commit."""
    return _parsed(user_metadata, EXPIRED)


def _parsed(user_metadata: str | None, wanted: str) -> dict[str, Any] | None:
    try:
        info = json.loads(user_metadata or "null")
    except json.JSONDecodeError:
        return None
    return info if isinstance(info, dict) and wanted in info and "commit_id" in info else None


def _breakdown(
    rows: Sequence[Sequence[Any]], partition: str, *, partitioned: bool
) -> dict[tuple[str | None, ...], int]:
    if not partitioned:
        return {tuple(row[:-1]): int(row[-1]) for row in rows}
    return {tuple(row[1:-1]): int(row[-1]) for row in rows if str(row[0]) == partition}
