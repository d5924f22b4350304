"""Fine-Grained Accessor for Tables: each role sees the columns and rows that are its business, in the shape it needs.

Problem: an analyst may see which pages are read, and no address; a partner may see counts, and no single visitor; an
engineer must find two rows of one user without learning who that is. A right to a whole table gives each of them too
much or nothing, and a copy of the table for each is a second truth.

How it works: contracts say whom a column identifies, and how. :data:`RIGHTS` says once for each role what it sees of a
direct identifier, of a pseudonym, of a quasi-identifier, and which rows; :func:`sight_of` derives from both what a role
sees of a dataset, so a new column is covered on the day it is declared. :func:`grants` is that as grants of columns and
policies of rows for PostgreSQL, which its roles log in under; :func:`restricted` is that as rows of Spark: `blogdata
sql --as ROLE` offers a statement nothing else to read.

A direct identifier is masked by a keyed hash, so rows still join by it; of an e-mail address as it was delivered, the
first sign and the domain are seen. Spark's workers read the key where the deployment's secrets are; a plan has the name
of a function, which no statement of a person may call. What is no text is not seen. A time that only helps to find
somebody is shown as its day.

Rows of who asked not to be shared are joined to others by what they have in common: a page and a second, or a rare
browser. A role that sees no persons therefore sees of these rows (`keep_private`) no pseudonym, no quasi-identifier and
no path of several pages, and times as their day: they can be counted, and lead to no other row. A dataset with
pseudonyms that does not say who asked is seen as if all had.

A count of few visitors by a column that a role does not see tells it that column: a contract declares such rows
(`Telling`), and they are left out. Where counts are left out, a total less the others would tell them: a partner does
not see the smallest of the others either (`adds_up`). Totals of other tables are not considered.

Where rows are left out, columns are null in them, too, before anything is computed from them: a statement that divides
by a value of a hidden row, to have the error tell it, finds no value there.

The trap: a filter in front of the table and nothing else. The optimizer may compute a reader's own expression first,
and its error, or its time, tells of rows that the filter would have removed. PostgreSQL knows which functions keep
quiet (`LEAKPROOF`); Spark does not. So where rows are left out, columns are null in them, too, before anything is
computed from them.

When not to use it: against whoever runs as the owner of the files, who reads them without asking. And not to make a
dataset anonymous: what a role still sees of one visitor may single that visitor out.

Source: Data Engineering Design Patterns, ch. 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from blogdata.contract.column_types import Primitive, parse
from blogdata.contract.contract import Contract
from blogdata.contract.privacy import TECHNICAL
from blogdata.contract.schema import Column, How
from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, ShowRights
from blogdata.patterns.security.pseudo_anonymizer import masked_email

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

MASK = "blogdata_masked"
"""Function of a session that returns the keyed hash of a text (`pseudo_anonymizer.tokens`)."""
PRIVATE = "keep_private"
"""Column that is true in rows of who asked not to be shared; a row in which it is null counts as one."""
TEXT = Primitive("string")
_TIMES = (Primitive("timestamp"), Primitive("date"))
LEAST_VISITORS = 5
"""Visitors below which a group is not shown to who may not know of one; one visitor alone may have many page views."""


class Role(str, Enum):
    OWNER = "owner"
    """Runs the deployment, and sees what is stored."""
    ENGINEER = "engineer"
    """Looks for faults: every row, and no person."""
    ANALYST = "analyst"
    """Asks what visitors do, not who they are."""
    PARTNER = "partner"
    """Is somebody else: counts of several visitors, and rows that are anonymous."""


class Shown(str, Enum):
    AS_IT_IS = "as it is"
    HASHED = "hashed"
    """A text as its keyed hash; another value that identifies somebody is null."""
    MASKED = "masked"
    """The part of it that its contract leaves."""
    BY_DAY = "by day"
    """A time as the begin of its day, any other value as it is."""
    HIDDEN = "hidden"


@dataclass(frozen=True, kw_only=True)
class Rights:
    layers: frozenset[str]
    of: Mapping[How, Shown]
    classified: Shown
    technical: bool = False
    private: bool = False
    visitors: int = 0
    """The fewest visitors of a counted group; a dataset that has none and is not anonymous is not seen. 0: any."""


_ALL_LAYERS = frozenset(("bronze", "silver", "gold"))
RIGHTS: Mapping[Role, Rights] = {
    Role.OWNER: Rights(
        layers=_ALL_LAYERS,
        of=dict.fromkeys(How, Shown.AS_IT_IS),
        classified=Shown.AS_IT_IS,
        technical=True,
        private=True,
    ),
    Role.ENGINEER: Rights(
        layers=_ALL_LAYERS,
        of={**dict.fromkeys(How, Shown.AS_IT_IS), How.DIRECT: Shown.HASHED},
        classified=Shown.HASHED,
        technical=True,
        private=True,
    ),
    Role.ANALYST: Rights(
        layers=frozenset(("silver", "gold")),
        of={How.DIRECT: Shown.HIDDEN, How.PSEUDONYM: Shown.AS_IT_IS, How.QUASI_IDENTIFIER: Shown.BY_DAY},
        classified=Shown.HIDDEN,
    ),
    Role.PARTNER: Rights(
        layers=frozenset(("gold",)),
        of=dict.fromkeys(How, Shown.HIDDEN),
        classified=Shown.HIDDEN,
        visitors=LEAST_VISITORS,
    ),
}
"""What each role sees, of every dataset."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What a role sees of one dataset; `rows` is an SQL condition, empty for all.

    Args:
        adds_up: Columns within which rows that are left out would follow from a total and the others: of each such set
            the smallest row that is seen is left out, too.
    """

    dataset: str
    columns: Mapping[str, Shown]
    rows: str = ""
    private: Mapping[str, Shown] = field(default_factory=dict)
    adds_up: tuple[str, ...] = ()


def sight_of(contract: Contract, role: Role) -> Sight | None:
    """Derive what a role sees of a dataset; None: nothing at all."""
    return sight_by(contract, RIGHTS[role])


def sight_by(contract: Contract, rights: Rights) -> Sight | None:
    """Derive what somebody with some rights sees of a dataset, as :func:`sight_of` does for a role."""
    names = {column.name for column in contract.columns}
    if contract.layer not in rights.layers or not (contract.shared or rights.technical):
        return None
    if rights.visitors and not (_visitors(contract) or contract.anonymous):
        return None
    needed = {*contract.key, contract.partition_column}
    columns = {
        column.name: shown
        for column in contract.columns
        if (shown := _shown(column, rights)) is not Shown.HIDDEN
        and (rights.technical or column.name not in TECHNICAL or column.name in needed)
    }
    private = {} if rights.private else _private(contract, columns)
    if PRIVATE not in names:
        less = {name: private.get(name, shown) for name, shown in columns.items()}
        columns, private = {name: shown for name, shown in less.items() if shown is not Shown.HIDDEN}, {}
    if not columns:
        return None
    adds_up = contract.adds_up if rights.visitors else ()
    return Sight(
        dataset=contract.dataset, columns=columns, rows=_rows(contract, rights), private=private, adds_up=adds_up
    )


def require_sight(contract: Contract, role: Role) -> Sight:
    sight = sight_of(contract, role)
    if sight is None:
        raise ConfigurationError(
            what=f"the role {role.value} does not see {contract.dataset}",
            where=contract.dataset,
            next_step=Remedy("see what the roles see: ", ShowRights()),
        )
    return sight


def restricted(frame: DataFrame, contract: Contract, role: Role) -> DataFrame:
    """Return what a role sees of the rows of a dataset; their session has the function :data:`MASK`."""
    if PRIVATE not in frame.columns and any(column.name == PRIVATE for column in contract.columns):
        # An older table does not say who asked: nobody's rows are known to be of somebody else.
        frame = frame.selectExpr("*", f"CAST(NULL AS BOOLEAN) AS {PRIVATE}")
    # A table that is older than a column has none of its values to tell rows apart by.
    present = replace(contract, columns=tuple(column for column in contract.columns if column.name in frame.columns))
    return seen_by(frame, present, require_sight(present, role))


def seen_by(frame: DataFrame, present: Contract, sight: Sight) -> DataFrame:
    declared = {column.name: column for column in present.columns}
    if sight.adds_up:
        frame = frame.withColumn(_BESIDE, _beside(present, sight))
        sight = replace(sight, rows=f"{sight.rows} AND NOT {_BESIDE}")
    selected = [
        f"{_guarded(_by_row(declared[name], sight), name, sight, present)} AS `{name}`" for name in sight.columns
    ]
    seen = frame.where(sight.rows) if sight.rows else frame
    return seen.selectExpr(*selected)


_BESIDE = "_beside"


def _beside(contract: Contract, sight: Sight) -> SparkColumn:
    """Build whether a row is the smallest seen one of a set of which others are left out."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    together, seen = Window.partitionBy(*sight.adds_up), F.expr(sight.rows)
    smallest = together.orderBy(F.desc(seen), F.expr(_visitors(contract)), *contract.key)
    return F.bool_or(~seen).over(together) & (F.row_number().over(smallest) == 1)


def _visitors(contract: Contract) -> str:
    """Build the SQL that counts the visitors of a row; empty if the dataset does not count them."""
    types = {column.name: column.type for column in contract.columns}
    if "users" in types:
        return "`users`"
    if "visitors" in types:
        return "`visitors`" if types["visitors"] == "BIGINT" else "hll_sketch_estimate(`visitors`)"
    return ""


def _shown(column: Column, rights: Rights) -> Shown:
    how = column.subject.how if column.subject is not None else None
    found = Shown.AS_IT_IS if how is None else rights.of[how]
    if found is Shown.HASHED and column.masked:
        return Shown.MASKED
    return rights.classified if column.personal and found in (Shown.AS_IT_IS, Shown.BY_DAY) else found


def _rows(contract: Contract, rights: Rights) -> str:
    """Build the condition of the rows that are seen; empty: all."""
    counted = _visitors(contract)
    if rights.visitors and counted:
        return f"{counted} >= {rights.visitors}"
    telling = [each.rows for each in contract.tells if _shown(each.column, rights) is not Shown.AS_IT_IS]
    return " AND ".join(f"(NOT ({rows}) OR {counted} >= {LEAST_VISITORS})" for rows in telling)


def _private(contract: Contract, columns: Mapping[str, Shown]) -> dict[str, Shown]:
    """Find what is seen of columns in rows of who asked not to be shared, where that is less."""
    seen = [column for column in contract.columns if column.name in columns]
    if not any(column.name == PRIVATE or column.singles_out for column in seen):
        return {}
    times = {column.name: Shown.BY_DAY for column in seen if parse(column.type) in _TIMES}
    leading = [column.name for column in seen if column.of_a_person or column.name in contract.paths]
    return {**times, **dict.fromkeys(leading, Shown.HIDDEN)}


def _guarded(expression: str, name: str, sight: Sight, contract: Contract) -> str:
    """Have a column null in rows that are not seen, whatever is computed first; partitions are no secret."""
    if not sight.rows or name == contract.partition_column:
        return expression
    return f"CASE WHEN {sight.rows} THEN {expression} END"


def _by_row(column: Column, sight: Sight) -> str:
    """Build the SQL of a column that may show less in rows of who asked not to be shared."""
    usual = _expression(column, sight.columns[column.name])
    private = sight.private.get(column.name)
    if private is None:
        return usual
    instead = "" if private is Shown.HIDDEN else f" ELSE {_expression(column, private)}"
    return f"CASE WHEN NOT `{PRIVATE}` THEN {usual}{instead} END"


def _expression(column: Column, shown: Shown) -> str:
    name, kind = f"`{column.name}`", parse(column.type)
    if shown is Shown.HASHED:
        # A new table would name the collation of strings that come from workers.
        return f"CAST({f'{MASK}({name})' if kind == TEXT else 'NULL'} AS {kind})"
    if shown is Shown.MASKED:
        return masked_email(name)
    if shown is Shown.BY_DAY and kind in _TIMES:
        return f"date_trunc('DAY', {name})"
    return name


def grants(contracts: Sequence[Contract], schema: str, role: Role, login: str) -> list[str]:
    """Write what a role sees as statements for the owner of the tables, which take away all other rights.

    PostgreSQL has no masks: a column that is masked on the lake is hidden here, and so are rows in which some are.
    """
    found = [f'GRANT USAGE ON SCHEMA "{schema}" TO "{login}"']
    for contract in contracts:
        table = f'"{schema}"."{contract.name}"'
        found += [
            # The rights of a table are taken away together with those of its columns.
            f'REVOKE ALL ON {table} FROM "{login}"',
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f'DROP POLICY IF EXISTS "{login}" ON {table}',
        ]
        sight = sight_of(contract, role)
        plain = [f'"{name}"' for name, shown in sight.columns.items() if shown is Shown.AS_IT_IS] if sight else []
        assert sight is None or not sight.adds_up, "a policy of PostgreSQL judges each row alone"
        if sight is not None and plain:
            conditions = (sight.rows, f"NOT `{PRIVATE}`" if sight.private else "")
            condition = " AND ".join(filter(None, conditions)).replace("`", '"') or "true"
            found += [
                f'GRANT SELECT ({", ".join(plain)}) ON {table} TO "{login}"',
                f'CREATE POLICY "{login}" ON {table} FOR SELECT TO "{login}" USING ({condition})',
            ]
    return found
