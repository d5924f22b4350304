"""What a change of a schema breaks: between two schemas, and against a table.

Pattern: Schema Compatibility Enforcer (:mod:`blogdata.patterns.quality.schema_compatibility_enforcer`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.contract.column_types import Field, of_delta, parse
from blogdata.contract.contract import Contract
from blogdata.contract.writes import AppearsWith, Append, Replace
from blogdata.errors import PlatformError
from blogdata.table import members

if TYPE_CHECKING:
    from deltalake import DeltaTable

MIGRATE = "add the new column beside it, declare a migration, and remove the old one after its grace period"


@dataclass(frozen=True)
class Incompatibility:
    column: str
    what: str

    def __str__(self) -> str:
        return f"{self.column}: {self.what}"


def incompatibilities(
    before: Sequence[Field], after: Sequence[Field], *, retired: Collection[str] = ()
) -> list[Incompatibility]:
    """List every change that breaks a query of the schema before, or the rows that were written by it."""
    then = {field.name: field for field in before}
    faults = [*_fixed(before, after, retired), *_added(then, after)]
    for field in after:
        old = then.get(field.name, field)
        if old.nullable and not field.nullable and not field.filled:
            what = "may no longer be null, and older rows may be; leave it nullable, and require a value by a rule"
            faults.append(Incompatibility(field.name, what))
        if field.nullable and not old.nullable:
            what = f"may be null now, and readers rely on its values; write one that says unknown, or {MIGRATE}"
            faults.append(Incompatibility(field.name, what))
    return faults


def hold_table(table: DeltaTable, contract: Contract) -> None:
    """Refuse a contract that its table cannot follow, with every reason at once."""
    if members.is_pointer(table):
        return
    schema = of_delta(json.loads(table.schema().to_json()))
    stays = contract.partitioning is not None and isinstance(contract.write, Replace | Append | AppearsWith)
    _hold(schema, contract, where=f"{contract.dataset} at {table.table_uri}", rows_stay=stays)


def hold_member(present: Mapping[str, str], contract: Contract, *, where: str) -> None:
    """Refuse a contract that removes a column which other tables of the dataset keep, or changes its type."""
    fields = [Field(name, parse(kind)) for name, kind in present.items()]
    _hold(fields, contract, where=where, rows_stay=contract.partitioning is not None)


def refused(dataset: str, faults: Sequence[Incompatibility], *, where: str, next_step: str) -> PlatformError:
    listed = "".join(f"\n    {fault}" for fault in faults)
    what = f"the schema of {dataset} breaks its readers, or its rows, in {len(faults)} place(s):{listed}"
    return PlatformError(what=what, where=where, next_step=next_step)


def _hold(present: Sequence[Field], contract: Contract, *, where: str, rows_stay: bool) -> None:
    # Other ways to write do not carry a retired column until it is removed: its values would silently end.
    migrated = contract.migrations if isinstance(contract.write, Replace) else ()
    faults = list(_fixed(present, contract.fields, {migration.old for migration in migrated}))
    if rows_stay:
        faults += _added({field.name for field in present}, contract.fields)
    if faults:
        next_step = (
            "nothing was written; if this code is older than the table, run the newer code; otherwise restore the "
            "columns in the contract, or migrate them"
        )
        raise refused(contract.dataset, faults, where=where, next_step=next_step)


def _fixed(before: Sequence[Field], after: Sequence[Field], retired: Collection[str]) -> Iterator[Incompatibility]:
    """List the columns that are gone or have another type; a field of a struct is part of its type."""
    types = {field.name: field.type for field in after}
    for field in before:
        kind = types.get(field.name)
        if kind is None and field.name not in retired:
            yield Incompatibility(field.name, f"was removed, and queries name it; keep it; to retire it, {MIGRATE}")
        elif kind is not None and str(field.type) != str(kind):
            what = f"changed its type from {field.type} to {kind}, which a table's column keeps; {MIGRATE}"
            yield Incompatibility(field.name, what)


def _added(before: Collection[str], after: Sequence[Field]) -> Iterator[Incompatibility]:
    what = "was added and may not be null, and older rows lack it; declare it nullable, or give it a default"
    for field in after:
        if field.name not in before and not field.nullable and not field.filled:
            yield Incompatibility(field.name, what)
