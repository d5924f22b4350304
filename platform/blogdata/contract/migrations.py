"""Contracts of tables that are being migrated: with both columns declared, and with the old one left in the table.

Pattern: Schema Migrator (:mod:`blogdata.patterns.quality.schema_migrator`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blogdata.contract.column_types import Primitive, of_delta
from blogdata.contract.contract import Contract
from blogdata.contract.schema import Classification, Column, How, Migration, RowRule, Subject, Whose
from blogdata.contract.writes import Replace
from blogdata.errors import ConfigurationError

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

REMOVED = "blogdata.removed"
"""Table property: names of removed columns, separated by commas; values of theirs may still be in files."""


def migrating(contract: Contract) -> Contract:
    """Add to a contract what each migration needs: a rule that holds both columns equal, and older rows filled."""
    declared = {column.name for column in contract.columns}
    replaced = isinstance(contract.write, Replace) or not contract.migrations
    assert replaced, f"{contract.dataset}: only a dataset whose partitions or table are replaced is migrated"
    for migration in contract.migrations:
        new, old = migration.new, migration.old
        assert new is None or new in declared, f"{contract.dataset} lacks {new}, instead of {old}"
        fixed = old in (*contract.key, contract.partition_column)
        assert not fixed, f"{old} identifies rows or partitions of {contract.dataset}: make another dataset"
    rules = tuple(
        RowRule(
            name=f"{migration.old}_is_{migration.new}",
            expression=f"`{migration.new}` <=> ({migration.forth})",
            description=f"To {migration}, both have the same value",
        )
        for migration in contract.migrations
        if migration.new is not None and migration.old in declared
    )
    return replace(contract, columns=_filled(contract, declared), rules=(*contract.rules, *rules))


def carried(contract: Contract, table: DeltaTable | None) -> Contract:
    """Add to a contract the retired columns that its table still has: they are written until they are removed."""
    declared = {column.name for column in contract.columns}
    retired = {migration.old: migration for migration in contract.migrations if migration.old not in declared}
    if not retired or table is None:
        return contract
    kept = tuple(
        Column(
            name=field.name,
            # As contracts write it; the names of a struct's fields keep their case.
            type=str(field.type).upper() if isinstance(field.type, Primitive) else str(field.type),
            nullable=field.nullable,
            description=f"Retired ({retired[field.name]})",
            **_identifying(contract, retired[field.name]),
        )
        for field in of_delta(json.loads(table.schema().to_json()))
        if field.name in retired
    )
    if not kept:
        return contract
    return replace(contract, columns=(*_filled(contract, {column.name for column in kept}), *kept))


def _identifying(contract: Contract, migration: Migration) -> dict[str, Any]:
    """Return whom a retired column identifies and who may see it: as with its successor; without one nobody sees it."""
    if migration.new is None:
        return {"subject": Subject(whose=Whose.USER, how=How.DIRECT), "classification": Classification.PERSONAL}
    (new,) = [column for column in contract.columns if column.name == migration.new]
    return {"subject": new.subject, "classification": new.classification}


def both(frame: DataFrame, contract: Contract) -> DataFrame:
    """Add to rows the column of each migration that they lack, computed from the other one."""
    from pyspark.sql import functions as F

    types = {column.name: column.type for column in contract.columns}
    for migration in contract.migrations:
        present, new = frame.columns, migration.new
        if migration.old in types and migration.old not in present:
            frame = frame.withColumn(migration.old, F.expr(migration.back).cast(types[migration.old]))
        elif new in types and new not in present:
            frame = frame.withColumn(new, F.expr(migration.forth).cast(types[new]))
    return frame


def refuse_return(table: DeltaTable, contract: Contract) -> None:
    """Refuse a column that was removed from the table: values of the removed one would show."""
    removed = set(table.metadata().configuration.get(REMOVED, "").split(","))
    added = {column.name for column in contract.columns} - {field.name for field in table.schema().fields}
    back = sorted(removed & added)
    if back:
        raise ConfigurationError(
            what=f"{', '.join(back)} was removed from this table, and its files still have the values",
            where=contract.dataset,
            next_step="choose another name",
        )


def _filled(contract: Contract, old: Collection[str]) -> tuple[Column, ...]:
    """Give the new columns of migrations the default that fills the rows which are older than they are."""
    defaults = {change.new: change.forth for change in contract.migrations if change.old in old and change.new}
    return tuple(replace(column, default=defaults.get(column.name, column.default)) for column in contract.columns)
