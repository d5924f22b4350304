"""What a change of a schema breaks: between two schemas, since the released versions, and against a table.

Pattern: Schema Compatibility Enforcer (:mod:`blogdata.patterns.quality.schema_compatibility_enforcer`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.lake import members
from blogdata.publish.column_types import Array, DataType, Field, Map, Struct, holds, of_delta, parse
from blogdata.publish.compatibility import Compatibility
from blogdata.publish.contract import Contract
from blogdata.publish.writes import AppearsWith, Append, Replace

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltalake import DeltaTable

MIGRATE = "add the new column beside it, declare a migration, and remove the old one after its grace period"


class IncompatibleSchema(PlatformError):
    """Raised when a schema cannot follow the one before it."""


@dataclass(frozen=True, kw_only=True)
class Incompatibility:
    """One change that breaks something.

    Args:
        version: The released version with which the new schema is incompatible; None if it was compared with another
            schema than that of a release.
    """

    column: str
    what: str
    breaks: str
    remedy: str
    version: int | None = None

    def __str__(self) -> str:
        against = "" if self.version is None else f" (since version {self.version})"
        return f"{self.column}: {self.what}{against}; {self.breaks}; {self.remedy}"


def incompatibilities(
    before: Sequence[Field], after: Sequence[Field], mode: Compatibility, *, retired: Collection[str] = ()
) -> list[Incompatibility]:
    """List every change between two schemas that a mode does not allow."""
    earlier = [field for field in before if field.name not in retired or field.name in {one.name for one in after}]
    return list(_of_fields(earlier, after, mode, ""))


def incompatible_with(
    versions: Mapping[int, Sequence[Field]],
    after: Sequence[Field],
    mode: Compatibility,
    *,
    retired: Collection[str] = (),
) -> list[Incompatibility]:
    """List each change that a mode does not allow, with the newest version in which it is one.

    Args:
        versions: Released versions, number to fields, in order; only the last one counts unless the mode is transitive.
    """
    found: dict[tuple[str, str], Incompatibility] = {}
    for number in sorted(versions, reverse=True)[: None if mode.transitive else 1]:
        for one in incompatibilities(versions[number], after, mode, retired=retired):
            found.setdefault((one.column, one.what), replace(one, version=number))
    return list(found.values())


def hold_table(table: DeltaTable, contract: Contract) -> None:
    """Refuse a contract that its table cannot follow, with every reason at once.

    Raises:
        IncompatibleSchema: A column changed its type, was removed without a migration, or is required and was added
            without a default while rows without it stay.
    """
    if members.is_pointer(table):
        return
    schema = of_delta(json.loads(table.schema().to_json()))
    stays = contract.partitioning is not None and isinstance(contract.write, Replace | Append | AppearsWith)
    _hold(schema, contract, where=f"{contract.dataset} at {table.table_uri}", rows_stay=stays)


def hold_member(present: Mapping[str, str], contract: Contract, *, where: str) -> None:
    """Refuse a contract that removes a column which other tables of the dataset keep, or changes its type."""
    fields = [Field(name, parse(kind)) for name, kind in present.items()]
    _hold(fields, contract, where=where, rows_stay=contract.partitioning is not None)


def refused(dataset: str, found: Sequence[Incompatibility], *, where: str, next_step: str) -> IncompatibleSchema:
    """Build the error for some incompatibilities."""
    listed = "".join(f"\n    {one}" for one in found)
    return IncompatibleSchema(
        what=f"the schema of {dataset} breaks its readers, or its rows, in {len(found)} place(s):{listed}",
        where=where,
        next_step=next_step,
    )


def _hold(present: Sequence[Field], contract: Contract, *, where: str, rows_stay: bool) -> None:
    # Other ways to write do not carry a retired column until it is removed: its values would silently end.
    migrated = contract.migrations if isinstance(contract.write, Replace) else ()
    retired = {migration.old for migration in migrated}
    wanted = {field.name: field for field in contract.fields}
    # Whatever the mode: a table keeps its columns, and a column its type.
    found = list(_fixed(present, wanted, retired))
    if rows_stay and contract.compatibility.backward:
        there = {field.name for field in present}
        found += [_added(field.name) for field in contract.fields if field.name not in there and _empty(field)]
    if found:
        raise refused(
            contract.dataset,
            found,
            where=where,
            next_step="nothing was written; if this code is older than the table, run the newer code again; otherwise "
            "restore the columns in the contract, or migrate them",
        )


def _fixed(
    present: Sequence[Field], wanted: Mapping[str, Field], retired: Collection[str]
) -> Iterator[Incompatibility]:
    for field in present:
        if field.name not in wanted:
            if field.name not in retired:
                yield _removed(field.name)
        elif field.type != wanted[field.name].type and str(field.type) != str(wanted[field.name].type):
            yield _retyped(field.name, field.type, wanted[field.name].type, "the table's column keeps its type")


def _of_fields(
    before: Sequence[Field], after: Sequence[Field], mode: Compatibility, prefix: str
) -> Iterator[Incompatibility]:
    now, then = {field.name: field for field in after}, {field.name: field for field in before}
    for name, old in then.items():
        path = f"{prefix}{name}"
        new = now.get(name)
        if new is None:
            if mode.forward:
                yield _removed(path)
            continue
        yield from _of_type(old.type, new.type, mode, path)
        if mode.backward and old.nullable and not new.nullable and not new.filled:
            yield Incompatibility(
                column=path,
                what="may no longer be null",
                breaks="rows that have been written may be",
                remedy="leave it nullable, and require a value of new rows by a rule",
            )
        if mode.forward and not old.nullable and new.nullable:
            yield Incompatibility(
                column=path,
                what="may be null now",
                breaks="consumers rely on its values",
                remedy="write a value that says that it is unknown, or " + MIGRATE,
            )
    if mode.backward:
        yield from (_added(f"{prefix}{name}") for name, field in now.items() if name not in then and _empty(field))


def _of_type(old: DataType, new: DataType, mode: Compatibility, path: str) -> Iterator[Incompatibility]:
    match old, new:
        case Struct(before), Struct(after):
            yield from _of_fields(before, after, mode, f"{path}.")
        case Array(before), Array(after):
            yield from _of_type(before, after, mode, f"{path}[]")
        case Map(key, value), Map(new_key, new_value):
            yield from _of_type(key, new_key, mode, f"{path}.key")
            yield from _of_type(value, new_value, mode, f"{path}.value")
        case _:
            if mode.backward and not holds(new, old):
                yield _retyped(path, old, new, "it does not hold what has been written")
            elif mode.forward and not holds(old, new):
                yield _retyped(path, old, new, "consumers of the old type do not hold what will be written")


def _empty(field: Field) -> bool:
    return not field.nullable and not field.filled


def _removed(path: str) -> Incompatibility:
    return Incompatibility(
        column=path,
        what="was removed",
        breaks="a query that names it fails",
        remedy=f"keep it; to retire it, {MIGRATE}",
    )


def _added(path: str) -> Incompatibility:
    return Incompatibility(
        column=path,
        what="was added and may not be null",
        breaks="rows that have been written lack it",
        remedy="declare it nullable, or give it a default",
    )


def _retyped(path: str, old: DataType, new: DataType, breaks: str) -> Incompatibility:
    return Incompatibility(column=path, what=f"changed its type from {old} to {new}", breaks=breaks, remedy=MIGRATE)
