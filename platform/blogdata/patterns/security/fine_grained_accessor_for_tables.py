"""Fine-Grained Accessor for Tables: each role sees the columns and rows that are its business, in the shape it needs.

Problem: an analyst may see which pages are read, and no address; a partner may see counts, and no single visitor; an
engineer must find two rows of one user without learning who that is. A right to a whole table gives each of them too
much or nothing, and a copy of the table for each is a second truth.
How it works: contracts say whom a column identifies, and how. :data:`RIGHTS` says once for each role what it sees of a
direct identifier, of a pseudonym, of a quasi-identifier, and which rows; :func:`sight_of` derives from both what a role
sees of a dataset, so a new column is covered on the day it is declared. :func:`grants` writes that as grants and row
policies of PostgreSQL, :func:`restricted` applies it to rows of Spark: `blogdata sql --as ROLE` can read nothing else.

A direct identifier is masked by a keyed hash, so rows still join by it; of an e-mail address, the first letter and the
domain are shown. Spark's workers read the key; a plan has only the name of a function that no statement may call. A
time that is a quasi-identifier is shown as its day.

Rows of persons who asked not to be shared (`keep_private`) could be joined to others by what they have in common: a
page and a second, or a rare browser. A role that sees no persons gets no pseudonym, no quasi-identifier and no path of
several pages of them, and times as their day. A dataset with pseudonyms and without that column is treated as if all
had asked.

A count of few visitors by a hidden column tells that column: a contract declares such rows (`Telling`), and they are
left out. Where a total less the other counts would tell a count that is left out, a partner does not see the smallest
of the others either (`adds_up`). Totals of other tables are not considered.
The trap: a filter in front of the table and nothing else. The optimizer may compute a reader's own expression first,
and its error, or its time, tells of rows that the filter would have removed. PostgreSQL knows which functions keep
quiet (`LEAKPROOF`); Spark does not. So where rows are left out, their columns are null before anything is computed.
When not to use it: against the owner of the files, who reads them without asking. And not to make a dataset anonymous:
what a role still sees of one visitor may single that visitor out.
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
    from pyspark.sql import DataFrame

MASK = "blogdata_masked"
"""Function of a session that returns the keyed hash of a text (`pseudo_anonymizer.tokens`)."""
PRIVATE = "keep_private"
"""Column that is true in rows of who asked not to be shared; a row in which it is null counts as one."""
TEXT = Primitive("string")
_TIMES = (Primitive("timestamp"), Primitive("date"))
LEAST_VISITORS = 5
"""Visitors below which a group is hidden from a role: one visitor alone may have many page views."""


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


LAYERS = ("bronze", "silver", "gold")


@dataclass(frozen=True, kw_only=True)
class Rights:
    layers: Sequence[str]
    of: Mapping[How, Shown]
    classified: Shown
    technical: bool = False
    """Sees what only the platform needs, and all of the rows of who asked not to be shared."""
    visitors: int = 0
    """The fewest visitors of a counted group; a dataset that has none and is not anonymous is not seen. 0: any."""


_AS_THEY_ARE = dict.fromkeys(How, Shown.AS_IT_IS)
_FOR_ANALYSTS = {How.DIRECT: Shown.HIDDEN, How.PSEUDONYM: Shown.AS_IT_IS, How.QUASI_IDENTIFIER: Shown.BY_DAY}
RIGHTS: Mapping[Role, Rights] = {
    Role.OWNER: Rights(layers=LAYERS, of=_AS_THEY_ARE, classified=Shown.AS_IT_IS, technical=True),
    Role.ENGINEER: Rights(
        layers=LAYERS, of={**_AS_THEY_ARE, How.DIRECT: Shown.HASHED}, classified=Shown.HASHED, technical=True
    ),
    Role.ANALYST: Rights(layers=LAYERS[1:], of=_FOR_ANALYSTS, classified=Shown.HIDDEN),
    Role.PARTNER: Rights(
        layers=LAYERS[2:], of=dict.fromkeys(How, Shown.HIDDEN), classified=Shown.HIDDEN, visitors=LEAST_VISITORS
    ),
}
"""What each role sees, of every dataset."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What a role sees of one dataset; `rows` is an SQL condition, empty for all."""

    dataset: str
    columns: Mapping[str, Shown]
    rows: str = ""
    private: Mapping[str, Shown] = field(default_factory=dict)
    adds_up: tuple[str, ...] = ()
    """Columns of groups with a total: where a row of a group is left out, its smallest other row is left out, too."""


def sight_of(contract: Contract, of: Role | Rights) -> Sight | None:
    """Derive what a role sees of a dataset; None: nothing at all."""
    rights = RIGHTS[of] if isinstance(of, Role) else of
    if contract.layer not in rights.layers or not (contract.shared or rights.technical):
        return None
    if rights.visitors and not (_visitors(contract) or contract.anonymous):
        return None
    needed = {*contract.key, contract.partition_column}
    columns = {
        column.name: form
        for column in contract.columns
        if (form := _form(column, rights)) is not Shown.HIDDEN
        and (rights.technical or column.name not in TECHNICAL or column.name in needed)
    }
    private = {} if rights.technical else _private(contract, columns)
    if all(column.name != PRIVATE for column in contract.columns):
        less = {name: private.get(name, form) for name, form in columns.items()}
        columns, private = {name: form for name, form in less.items() if form is not Shown.HIDDEN}, {}
    if not columns:
        return None
    rows, adds_up = _rows(contract, rights), contract.adds_up if rights.visitors else ()
    return Sight(dataset=contract.dataset, columns=columns, rows=rows, private=private, adds_up=adds_up)


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
        # An older table does not say who asked not to be shared: it is treated as if all had.
        frame = frame.selectExpr("*", f"CAST(NULL AS BOOLEAN) AS {PRIVATE}")
    # An older table may lack columns: rows cannot be told apart by them.
    present = replace(contract, columns=tuple(column for column in contract.columns if column.name in frame.columns))
    return seen_by(frame, present, require_sight(present, role))


def seen_by(frame: DataFrame, present: Contract, sight: Sight) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if sight.adds_up:
        together, seen = Window.partitionBy(*sight.adds_up), F.expr(sight.rows)
        smallest = together.orderBy(F.desc(seen), F.expr(_visitors(present)), *present.key)
        frame = frame.withColumn(_BESIDE, F.bool_or(~seen).over(together) & (F.row_number().over(smallest) == 1))
        sight = replace(sight, rows=f"{sight.rows} AND NOT {_BESIDE}")
    columns = [column for column in present.columns if column.name in sight.columns]
    rows = frame.where(sight.rows) if sight.rows else frame
    return rows.selectExpr(*[f"{_guarded(column, sight, present)} AS `{column.name}`" for column in columns])


_BESIDE = "_beside"
"""Whether a row is the smallest seen one of a set of which others are left out."""


def _visitors(contract: Contract) -> str:
    """Build the SQL that counts the visitors of a row; empty if the dataset does not count them."""
    types = {column.name: column.type for column in contract.columns}
    if "users" in types:
        return "`users`"
    if "visitors" in types:
        return "`visitors`" if types["visitors"] == "BIGINT" else "hll_sketch_estimate(`visitors`)"
    return ""


def _form(column: Column, rights: Rights) -> Shown:
    how = column.subject.how if column.subject is not None else None
    form = Shown.AS_IT_IS if how is None else rights.of[how]
    if form is Shown.HASHED and column.masked:
        return Shown.MASKED
    return rights.classified if column.personal and form in (Shown.AS_IT_IS, Shown.BY_DAY) else form


def _rows(contract: Contract, rights: Rights) -> str:
    """Build the condition of the rows that are seen; empty: all."""
    counted = _visitors(contract)
    if rights.visitors and counted:
        return f"{counted} >= {rights.visitors}"
    conditions = [telling.rows for telling in contract.tells if _form(telling.column, rights) is not Shown.AS_IT_IS]
    return " AND ".join(f"(NOT ({rows}) OR {counted} >= {LEAST_VISITORS})" for rows in conditions)


def _private(contract: Contract, columns: Mapping[str, Shown]) -> dict[str, Shown]:
    """Map the columns of which a role sees less in rows of persons who asked not to be shared to what it sees."""
    seen = [column for column in contract.columns if column.name in columns]
    if not any(column.name == PRIVATE or column.singles_out for column in seen):
        return {}
    times = {column.name: Shown.BY_DAY for column in seen if parse(column.type) in _TIMES}
    leading = [column.name for column in seen if column.of_a_person or column.name in contract.paths]
    return {**times, **dict.fromkeys(leading, Shown.HIDDEN)}


def _guarded(column: Column, sight: Sight, contract: Contract) -> str:
    """Build the SQL of a column, null in rows that are not seen, whatever is computed first; partitions are public."""
    expression, private = _expression(column, sight.columns[column.name]), sight.private.get(column.name)
    if private is not None:
        instead = "" if private is Shown.HIDDEN else f" ELSE {_expression(column, private)}"
        expression = f"CASE WHEN NOT `{PRIVATE}` THEN {expression}{instead} END"
    if not sight.rows or column.name == contract.partition_column:
        return expression
    return f"CASE WHEN {sight.rows} THEN {expression} END"


def _expression(column: Column, form: Shown) -> str:
    name, kind = f"`{column.name}`", parse(column.type)
    if form is Shown.HASHED:
        # A new table would name the collation of strings that come from workers.
        return f"CAST({f'{MASK}({name})' if kind == TEXT else 'NULL'} AS {kind})"
    if form is Shown.MASKED:
        return masked_email(name)
    if form is Shown.BY_DAY and kind in _TIMES:
        return f"date_trunc('DAY', {name})"
    return name


def grants(contracts: Sequence[Contract], schema: str, role: Role, login: str) -> list[str]:
    """Write what a role sees as statements of PostgreSQL, which take away all other rights.

    It has no masks: a column that is masked on the lake is hidden here, and so are rows in which some are.
    """
    statements = [f'GRANT USAGE ON SCHEMA "{schema}" TO "{login}"']
    for contract in contracts:
        table = f'"{schema}"."{contract.name}"'
        statements += [
            # The rights of a table are taken away together with those of its columns.
            f'REVOKE ALL ON {table} FROM "{login}"',
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f'DROP POLICY IF EXISTS "{login}" ON {table}',
        ]
        sight = sight_of(contract, role)
        plain = [f'"{name}"' for name, form in sight.columns.items() if form is Shown.AS_IT_IS] if sight else []
        assert sight is None or not sight.adds_up, "a policy of PostgreSQL judges each row alone"
        if sight is not None and plain:
            conditions = (sight.rows, f"NOT `{PRIVATE}`" if sight.private else "")
            condition = " AND ".join(filter(None, conditions)).replace("`", '"') or "true"
            statements += [
                f'GRANT SELECT ({", ".join(plain)}) ON {table} TO "{login}"',
                f'CREATE POLICY "{login}" ON {table} FOR SELECT TO "{login}" USING ({condition})',
            ]
    return statements
