"""One contract per dataset: everything that is promised about it, in one declaration.

Delta constraints, audits, Great Expectations suites, Dagster checks, column schemas and docs are derived from
it; nothing about a dataset is written down twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from blogdata.contract.column_types import Field, parse
from blogdata.contract.partitions import Grain
from blogdata.contract.schedule import Runs
from blogdata.contract.schema import (
    Audit,
    Buckets,
    Column,
    Encrypted,
    Migration,
    Partitioning,
    Reference,
    RowRule,
    Telling,
    Wide,
)
from blogdata.contract.watch import Watch
from blogdata.contract.writes import AppearsWith, ByPeriod, Copy, InOrder, Replace, Write
from blogdata.errors import ConfigurationError

if TYPE_CHECKING:
    from blogdata.contract.publication import Entry

LEAST_ROWS = 100
"""Rows below which a share has no meaning: one bad line in a quiet hour is no reason to stop. A quieter partition is
judged together with quiet partitions before it that add up to this number."""
ANSWERS = "Denormalizer"
"""Pattern whose datasets repeat what others say: each of their columns names the question that needs it."""
_POLICIES = (
    *("adds_up", "anonymous", "buckets", "consumers", "migrations", "paths", "profiled", "references", "tells"),
    *("view", "watch", "wide"),
)
"""What of a contract, besides its inputs, is no promise about its rows."""
Wanted = Mapping[str, Mapping[str, str]]
"""Dataset to the partitions that must run, each with the reason."""


class Arrival(Protocol):
    """A partition that has landed, complete; the fingerprint is a digest of its files: names, sizes and times."""

    @property
    def key(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...


class Look(Protocol):
    """A snapshot of what has landed and what is published."""

    def published(self, dataset: str) -> Mapping[str, Entry]:
        """Partition to its newest publication."""

    def history(self, dataset: str) -> Sequence[Entry]:
        """All publications of a dataset, in the order of the versions."""

    def landed(self, table: str, grain: Grain) -> Sequence[Arrival]:
        """The complete partitions of a landed table, in order."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A dependency: one dataset reads another one."""

    above: str
    below: Contract

    @property
    def grain(self) -> Grain:
        """Length of a partition of the reader, which has some."""
        assert self.below.partitioning is not None
        return self.below.partitioning.grain


class Reach(Protocol):
    """The mapping between the partitions of a dataset and those of its input, in both directions."""

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Map the stale partitions below to a text for the input state that they lack, which changes only with that."""

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Map the partitions below to the wanted partition above that they have read; empty: the whole input."""


@runtime_checkable
class Sliced(Protocol):
    """A reach that tells which partitions below only lack slices that came later than all that they have read."""

    def came(self, look: Look, edge: Edge, keys: Iterable[str], *, until: int) -> Mapping[str, Sequence[str]]:
        """Find the partitions below of whose input nothing else changed, with the slices that came."""


@dataclass(frozen=True)
class Read:
    """An input of a dataset."""

    dataset: str
    reach: Reach
    fields: tuple[Field, ...] = ()
    """What the producer of a landed table has announced to send; empty for a dataset."""
    columns: tuple[str, ...] | None = None
    """Columns of a dataset that its reader takes outside Spark's plan, which then names none of them; None: column
    lineage knows which are read."""
    optional: bool = False
    """Whether the reader is computed without it too, as long as it has never come."""


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What is promised about one dataset."""

    dataset: str
    description: str
    owner: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """Columns that identify a row; their uniqueness is audited per partition. Empty: rows have no identity."""
    partitioning: Partitioning | None = None
    reads: tuple[Read, ...] = ()
    """Its inputs; those of a companion are in the contract of its main dataset."""
    runs: Runs = field(default_factory=Runs)
    write: Write = field(default_factory=Replace)
    view: str = ""
    """Spark SQL over its inputs, named as `layer.table`, whose result the table is (Dataset Materializer); empty: no
    single statement computes it."""
    rules: tuple[RowRule, ...] = ()
    audits: tuple[Audit, ...] = ()
    rows_in: str = ""
    """What a partition has to account for, in words; empty: the rows of its first input."""
    stands_for: str = "count(1)"
    """SQL aggregate: how many rows of the layer above the written rows account for."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """SQL aggregates, by reason: how many of these are not rows of this table."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reasons that the steps of the dataset state in their accounts instead, each with its description; `filtered.*`
    stands for all with that prefix. It may also describe reasons of `reasons`."""
    measures: Mapping[str, str] = field(default_factory=dict)
    breakdowns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: int | None = None
    """How many partitions of the inputs make one of these complete, e.g. hours of a day, counted by the measure
    `parts`; the measure `parts_expected` overrides it for a partition. None: it is not gathered from others."""
    max_share: float | None = None
    """Largest share, 0 to 1, of its input rows that may end in this dataset; None: no limit. A larger share fails a
    blocking check, after the rows have been stored."""
    references: tuple[Reference, ...] = ()
    """Rows of other datasets that its rows refer to; audited after the publication."""
    profiled: tuple[str, ...] = ()
    """Columns whose distribution of values is followed after the publication (Offline Observer), without personal ones:
    their values would be stored with the profiles."""
    statistics: tuple[str, ...] = ()
    """Columns with file statistics for data skipping; each one costs on every write."""
    buckets: Buckets | None = None
    patterns: tuple[str, ...] = ()
    freshness_hours: float | None = None
    """Hours after the end of a partition by which it is published; None: no promise."""
    watch: Watch = field(default_factory=Watch)
    feeds: tuple[str, ...] = ()
    """Datasets that read its change feed, which is kept then (Dataset Materializer)."""
    shared: bool = True
    """Whether consumers get a view of it; not the state from which a dataset continues."""
    consumers: tuple[str, ...] = ()
    """Teams that use it outside of the lineage, as `team:name`; they are told before it changes."""
    retention_days: int = 730
    migrations: tuple[Migration, ...] = ()
    wide: Wide | None = None
    encrypted: Encrypted | None = None
    paths: tuple[str, ...] = ()
    """Columns that tell of several page views of one visitor: those of who asked not to be shared are hidden from roles
    that see no persons."""
    tells: tuple[Telling, ...] = ()
    anonymous: bool = False
    """No row leads to a person, which audits enforce that nobody can lift: it is for people outside, too."""
    adds_up: tuple[str, ...] = ()
    """Columns within which its counts add up to a total that it has, too."""

    def __post_init__(self) -> None:
        idle = [column.name for column in self.columns if not column.answers] if ANSWERS in self.patterns else []
        if idle:
            what = f"no question needs these columns: {', '.join(idle)}"
            next_step = "leave them out, or declare the question as `answers` of each"
            raise ConfigurationError(what=what, where=self.dataset, next_step=next_step)

    @property
    def promise(self) -> timedelta | None:
        return None if self.freshness_hours is None else timedelta(hours=self.freshness_hours)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the patterns the dataset uses, those of its detectors among them."""
        return (*self.patterns, *(name for name in self.watch.patterns if name not in self.patterns))

    @property
    def layer(self) -> str:
        return self.dataset.split(".", 1)[0]

    @property
    def name(self) -> str:
        return self.dataset.split(".", 1)[1]

    @property
    def partition_column(self) -> str | None:
        return self.partitioning.column if self.partitioning else None

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns that identify a row of the whole table: its key, and the partition in which the key is unique."""
        column = self.partition_column
        return (column, *self.key) if self.key and column and column not in self.key else self.key

    @property
    def executed(self) -> Grain | None:
        """Length of an execution's period; None if the rows do not depend on the order of runs."""
        return self.write.period if isinstance(self.write, InOrder) else None

    @property
    def replay_limit(self) -> int | None:
        """How many later executions one rerun may trigger; None: any number."""
        return self.write.replay_limit if isinstance(self.write, InOrder) else None

    @property
    def replaced_kept(self) -> timedelta | None:
        """How long a replaced table behind the dataset's name is kept; None if the dataset is one table."""
        if isinstance(self.write, Copy):
            return timedelta(days=self.retention_days)
        return self.write.kept if isinstance(self.write, ByPeriod) else None

    @property
    def appears_with(self) -> str | None:
        """The dataset whose commits publish this one; None if it has its own commits."""
        return self.write.main if isinstance(self.write, AppearsWith) else None

    @property
    def main(self) -> str:
        """The dataset whose commits publish this one: its own name, or the one it appears with."""
        return self.appears_with or self.dataset

    @property
    def grain(self) -> Grain | None:
        """Length of the partition or execution period that one run computes; None: the whole table."""
        return self.partitioning.grain if self.partitioning else self.executed

    @property
    def fingerprint(self) -> str:
        """A digest of everything promised about the rows; inputs, the view and policies are not part of it."""
        promised = {**asdict(replace(self, reads=(), runs=Runs())), "write": repr(self.write)}
        for policy in _POLICIES:
            del promised[policy]
        for column in promised["columns"]:
            del column["answers"], column["sourceless"], column["subject"], column["masked"]
        text = json.dumps(promised, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def fields(self) -> tuple[Field, ...]:
        new = {migration.new for migration in self.migrations}
        return tuple(
            Field(column.name, parse(column.type), column.nullable, filled=bool(column.default) or column.name in new)
            for column in self.columns
        )

    @property
    def ddl(self) -> str:
        required = {True: "", False: " NOT NULL"}
        return ", ".join(f"`{column.name}` {column.type}{required[column.nullable]}" for column in self.columns)
