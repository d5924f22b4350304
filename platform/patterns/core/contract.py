"""One contract per dataset: everything that is promised about it, in one declaration.

Delta constraints, audits, Great Expectations suites, Dagster checks, column schemas and docs are derived from
it; nothing about a dataset is written down twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum

from patterns.core.partitions import Grain


class Classification(str, Enum):
    """Who may see a column."""

    PUBLIC = "public"
    INTERNAL = "internal"
    PERSONAL = "personal"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its Spark SQL type, whether it may be null, and who may see it."""

    name: str
    type: str
    description: str
    nullable: bool = True
    classification: Classification = Classification.INTERNAL


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition every row satisfies, as Spark SQL; enforced by a Delta CHECK constraint and counted by the audit."""

    name: str
    expression: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A condition each written partition satisfies as a whole, as a boolean Spark SQL aggregate."""

    name: str
    expression: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Partitioning:
    """The column a table is partitioned by, and how much time one value covers."""

    column: str
    grain: Grain


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What is promised about one dataset.

    Args:
        dataset: Name as `layer.table`.
        description: What a row is, for a reader who does not know the platform.
        owner: Team that answers for it, as `team:name`.
        columns: The schema, in order.
        key: Columns that identify a row; their uniqueness is audited per partition. Empty: rows have no identity.
        partitioning: The time partition; None for a table that is written whole.
        executed: Length of the period of one execution, for a table that is not partitioned and that executions in
            their order make what it is (Stateful Merger). None: its rows do not depend on the order of runs.
        replay_limit: How many later executions may follow from one that runs again, unless they are asked for, too.
        rules: Conditions on rows.
        audits: Conditions on a written partition.
        stands_for: SQL aggregate: how many rows of the layer above the written rows account for.
        reasons: SQL aggregates: how many of these are not rows of this table, by reason.
        measures: Further SQL aggregates kept with each commit.
        breakdowns: Row counts by these columns kept with each commit, by name.
        parts: How many partitions of the layer below make one of these complete, counted by the measure `parts`; None
            when a partition is not gathered from others.
        lookback: How many partitions before the newest one late rows still change; older ones are final unless a person
            runs them again. None: late rows change any partition.
        max_share: Largest share, 0 to 1, of the rows it was given that may end here; None sets no bound. More fails a
            blocking check, when the rows have been kept.
        statistics: Columns with file statistics for skipping; chosen, because each costs on every write.
        patterns: Names of the patterns the dataset uses, as in the pattern index.
        merged: Rows of it change one by one (Merger): a changed row is marked where it is, and its file is not copied.
        appears_with: Dataset whose commits publish this one, too (Transactional Writer); None for one of its own.
        freshness_hours: Hours after the end of a partition by which it is published; None when nothing is promised.
        retention_days: How long rows are kept.
    """

    dataset: str
    description: str
    owner: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    partitioning: Partitioning | None = None
    executed: Grain | None = None
    replay_limit: int | None = None
    rules: tuple[Rule, ...] = ()
    audits: tuple[Audit, ...] = ()
    stands_for: str = "count(1)"
    reasons: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)
    breakdowns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: int | None = None
    lookback: int | None = None
    max_share: float | None = None
    statistics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    merged: bool = False
    appears_with: str | None = None
    freshness_hours: float | None = None
    retention_days: int = 730

    @property
    def layer(self) -> str:
        """The part of the name before the dot."""
        return self.dataset.split(".", 1)[0]

    @property
    def name(self) -> str:
        """The part of the name after the dot."""
        return self.dataset.split(".", 1)[1]

    @property
    def partition_column(self) -> str | None:
        """The column the table is partitioned by; None when it is written whole."""
        return self.partitioning.column if self.partitioning else None

    @property
    def fingerprint(self) -> str:
        """A digest that changes when anything promised changes."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def ddl(self) -> str:
        """The schema as Spark SQL column definitions."""
        return ", ".join(
            f"`{column.name}` {column.type}{'' if column.nullable else ' NOT NULL'}" for column in self.columns
        )
