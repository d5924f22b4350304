"""Transformation Replicator: another environment gets real rows, and no value that leads to a person.

Problem: a job is tried on staging before it is released. Generated rows lack the faults of real ones; real ones have
names and addresses, which more people could read there than may.
How it works: the copy is derived from the contract, which says of each column whom it identifies (:data:`STAGING`,
:func:`sight_of`). A text that identifies somebody directly or by a pseudonym becomes its keyed hash, so rows still join
and keys stay unique; the key of these hashes is for staging alone. Other values that identify somebody, such as the
line as received, are removed, and so is any other column that is classified as personal. A time that is a
quasi-identifier is its day. Rows that would tell a removed column are left out. All other values stay
(:func:`transformed`). Rows are computed before they are written, and the copy is a new table each time, so no data
file, statistic or log of it ever had another value.
The trap: `SELECT * EXCEPT (ip)`. A column that comes later is copied before anybody has thought about it. Here a
column, or a field of a struct, that the contract does not declare stops the copy and is named
(:func:`require_classified`). And free text: a page or a campaign that has somebody's name in it is copied, as the
contract says that it leads to nobody.
When not to use it: to give rows away. Staging is pseudonymous and not anonymous: browsers, days and pages of one
visitor stay together, and may single somebody out. People outside get what the Anonymizer makes.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.contract.column_types import Array, DataType, Field, Map, Struct
from blogdata.contract.contract import Contract
from blogdata.contract.schema import How
from blogdata.errors import PlatformError
from blogdata.patterns.security import fine_grained_accessor_for_tables as accessor
from blogdata.patterns.security.fine_grained_accessor_for_tables import Rights, Shown, Sight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STAGING = Rights(
    layers=accessor.LAYERS,
    of={How.DIRECT: Shown.HASHED, How.PSEUDONYM: Shown.HASHED, How.QUASI_IDENTIFIER: Shown.BY_DAY},
    classified=Shown.HIDDEN,
    technical=True,
)
"""What staging gets of a column, by how it identifies somebody: every row, and nobody."""
PURPOSE = "staging"
"""What its keyed hashes are for: they cannot be compared with those that roles see."""


def require_classified(contract: Contract, stored: Sequence[Field]) -> None:
    """Refuse to copy a table that has a column, or a field within one, of which nobody has said whom it identifies."""
    undecided = {column.name for column in contract.columns if column.undecided}
    columns = [*_undeclared(Struct(tuple(stored)), Struct(contract.fields)), *sorted(undecided)]
    if columns:
        raise PlatformError(
            what=f"nobody has said whom these columns identify: {', '.join(columns)}",
            where=contract.dataset,
            next_step="declare them, with their `subject`, in the contract of the dataset; until then it is not copied",
        )


def sight_of(contract: Contract) -> Sight | None:
    """Derive what staging gets of a dataset; None if no column is left."""
    # Rows that tell a removed column are found by all columns.
    sight = accessor.sight_of(contract, STAGING)
    if sight is None:
        return None
    types = {field.name: field.type for field in contract.fields}
    columns = {
        name: form for name, form in sight.columns.items() if form is not Shown.HASHED or types[name] == accessor.TEXT
    }
    return replace(sight, columns=columns) if columns else None


def transformed(frame: DataFrame, contract: Contract) -> DataFrame:
    present = replace(contract, columns=tuple(column for column in contract.columns if column.name in frame.columns))
    sight = sight_of(present)
    assert sight is not None
    return accessor.seen_by(frame, present, sight)


def _undeclared(stored: DataType, declared: DataType | None, path: str = "") -> Iterator[str]:
    match stored:
        case Struct():
            known = {field.name: field.type for field in declared.fields} if isinstance(declared, Struct) else {}
            for field in stored.fields:
                inner = f"{path}.{field.name}".lstrip(".")
                if field.name not in known:
                    yield inner
                else:
                    yield from _undeclared(field.type, known[field.name], inner)
        case Array():
            yield from _undeclared(stored.element, declared.element if isinstance(declared, Array) else None, path)
        case Map():
            yield from _undeclared(stored.key, declared.key if isinstance(declared, Map) else None, path)
            yield from _undeclared(stored.value, declared.value if isinstance(declared, Map) else None, path)
