"""The parts of a contract: columns, rules, audits and partitioning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from blogdata.publish.partitions import Grain


class Classification(str, Enum):
    """Who may see a column."""

    PUBLIC = "public"
    INTERNAL = "internal"
    PERSONAL = "personal"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its Spark SQL type, whether it may be null, and who may see it.

    Args:
        name: Its name.
        type: Its Spark SQL type.
        description: The meaning of its values.
        nullable: It may be null.
        classification: Who may see it.
        generated: SQL expression over other columns that computes its value; Delta refuses any other value. A table
            that was created without it stays without it. None: the value is whatever is written.
        default: SQL expression over the older columns that fills it in the rows of a table that is older than it, once,
            when it is added. None: it is null there.
        sourceless: Why its values are computed from no column, such as "counts rows". None: column lineage names its
            sources.
    """

    name: str
    type: str
    description: str
    nullable: bool = True
    classification: Classification = Classification.INTERNAL
    generated: str | None = None
    default: str | None = None
    sourceless: str | None = None


@dataclass(frozen=True, kw_only=True)
class RowRule:
    """A condition every row satisfies, as Spark SQL; enforced by a Delta CHECK constraint and counted by the audit."""

    name: str
    expression: str
    description: str


class Failed(str, Enum):
    """What a failed audit does to the publication."""

    REFUSES = "refuses"
    """Nothing is published; readers keep the version before."""
    WARNS = "warns"
    """The rows are published, and the commit says that they failed the audit."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A condition each written partition satisfies as a whole.

    Args:
        name: Its name; datasets that share it have the same condition, and a person lifts it for all of them.
        expression: A boolean Spark SQL aggregate.
        description: What holds, in words.
        failed: What happens when it does not hold.
    """

    name: str
    expression: str
    description: str
    failed: Failed = Failed.REFUSES


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Rows that must exist in another dataset.

    Args:
        dataset: The dataset they refer to, as `layer.table`.
        columns: Own column to the column it refers to; a row in which any of its own is null refers to nothing.
    """

    dataset: str
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Partitioning:
    """The column a table is partitioned by, and how much time one value covers."""

    column: str
    grain: Grain
