"""The parts of a contract: columns and their migrations, rules, audits and partitioning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import date, timedelta
from enum import Enum

from blogdata.contract.partitions import Grain

_TYPES_OF_FIGURES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
"""Types of counts, shares and marks: a column of another type has to declare its subject."""


class Classification(str, Enum):
    """Who may see a column."""

    PUBLIC = "public"
    INTERNAL = "internal"
    PERSONAL = "personal"


class Whose(str, Enum):
    """Whom the values of a column lead to."""

    USER = "user"
    """A person with an account."""
    VISITOR = "visitor"
    """A person who reads the blog, with an account or without."""
    NOBODY = "nobody"


class How(str, Enum):
    """How a value leads to a person; the terms are those of ISO/IEC 20889."""

    DIRECT = "direct"
    """By itself: a name, an address, an id that the person has elsewhere, or a text that may contain any of them."""
    PSEUDONYM = "pseudonym"
    """It stands for one person, who is found only with other data: a random id or a keyed hash."""
    QUASI_IDENTIFIER = "quasi-identifier"
    """Together with other columns: many persons have the same value, few the same combination."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    whose: Whose
    how: How | None

    def __post_init__(self) -> None:
        assert (self.whose is Whose.NOBODY) == (self.how is None), "declare `how` of a user or a visitor, None for none"

    def __str__(self) -> str:
        return f"{self.whose.value}, {self.how.value}" if self.how else self.whose.value

    @property
    def singles_out(self) -> bool:
        """One value stands for one person: it is a direct identifier or a pseudonym."""
        return self.how in (How.DIRECT, How.PSEUDONYM)


NOBODY = Subject(whose=Whose.NOBODY, how=None)


@dataclass(frozen=True)
class Column:
    """One column: its Spark SQL type, whether it may be null, whom it identifies, and who may see it."""

    name: str
    description: str
    _: KW_ONLY
    type: str
    nullable: bool = True
    subject: Subject | None = None
    """Whom it identifies, and how. None: a number or a mark, which leads to nobody; a contract has to declare it for
    columns of all other types."""
    classification: Classification = Classification.INTERNAL
    masked: bool = False
    """Who looks for faults sees the first sign and the domain of its e-mail addresses: a***@example.com."""
    generated: str | None = None
    """SQL expression over other columns that computes its value; Delta refuses any other value. A table that was
    created without it stays without it."""
    default: str | None = None
    """SQL expression that fills it in older rows, once, when it is added. None: it is null there."""
    sourceless: str | None = None
    """Why its values are computed from no column, such as "counts rows"."""
    answers: str | None = None
    """The question that needs it. A dataset that repeats what others say declares one for each column."""

    @property
    def undecided(self) -> bool:
        """It has no declared subject, and its type can hold a person's value."""
        return self.subject is None and not self.type.upper().startswith(_TYPES_OF_FIGURES)

    @property
    def of_a_person(self) -> bool:
        """Its values lead to a user or visitor, alone or together with others."""
        return self.subject is not None and self.subject.whose is not Whose.NOBODY

    @property
    def singles_out(self) -> bool:
        return self.subject is not None and self.subject.singles_out

    @property
    def personal(self) -> bool:
        """Consumers do not see it."""
        direct = self.subject is not None and self.subject.how is How.DIRECT
        return direct or self.classification is Classification.PERSONAL


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """Rows with the same value of a column have the same bucket (Bucket)."""

    column: str
    """INT column with the bucket, from 0; null where the value is."""
    of: str
    number: int


@dataclass(frozen=True)
class RowRule:
    """A condition every row satisfies, as Spark SQL; enforced by a Delta CHECK constraint and counted by the audit."""

    name: str
    expression: str
    description: str


class Failed(str, Enum):
    """What a failed audit does to the publication."""

    REFUSES = "refuses"
    """Nothing is published; readers keep the version before."""
    FORBIDS = "forbids"
    """Nothing is published, and no person can lift the audit."""
    WARNS = "warns"
    """The rows are published, and the commit says that they failed the audit."""


@dataclass(frozen=True)
class Audit:
    """A condition each written partition satisfies as a whole."""

    name: str
    """Its name; datasets that share it have the same condition, and a person lifts it for all of them."""
    expression: str
    description: str
    failed: Failed = Failed.REFUSES


@dataclass(frozen=True)
class Reference:
    """Rows that must exist in another dataset."""

    dataset: str
    columns: Mapping[str, str]
    """Own column to the column it refers to; a row in which any of its own is null refers to nothing."""


@dataclass(frozen=True, kw_only=True)
class Telling:
    """Rows whose values are those of a column of another dataset: of few visitors, they reveal what that one hides."""

    rows: str
    column: Column


WHOLE = "_whole"
"""Suffix of the name of the view that has all columns of a dataset, the wide ones last."""


@dataclass(frozen=True, kw_only=True)
class Wide:
    """Columns of a dataset that only another dataset stores (Vertical Partitioner)."""

    columns: tuple[Column, ...]
    of: str
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, kw_only=True)
class Encrypted:
    """Columns of a dataset that are stored encrypted (Encryptor)."""

    columns: tuple[str, ...]
    key: str
    row: str


@dataclass(frozen=True, kw_only=True)
class Partitioning:
    """The column a table is partitioned by, and how much time one value covers."""

    column: str
    grain: Grain


@dataclass(frozen=True, kw_only=True)
class Migration:
    """The retirement of a column: for a grace period both it and its successor are written, then it is removed."""

    old: str
    since: date
    grace: timedelta
    new: str | None = None
    """The column that replaces it; None if none of the dataset does."""
    new_from_old: str = ""
    """SQL expression of the new column; empty: the same values."""

    @property
    def ends(self) -> date:
        return self.since + self.grace

    @property
    def forth(self) -> str:
        return self.new_from_old or f"`{self.old}`"

    @property
    def back(self) -> str:
        """SQL expression of the old column where the asset does not compute it, until the table has lost it."""
        return f"`{self.new}`" if self.new else "NULL"

    def __str__(self) -> str:
        if self.new is None:
            return f"remove {self.old}"
        return f"change {self.old} to {self.new}" if self.new_from_old else f"rename {self.old} to {self.new}"
