"""The contract under which a table is written while it still has columns that the contract has retired."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from publish.column_types import Primitive, of_delta
from publish.contract import Contract
from publish.schema import Column

if TYPE_CHECKING:
    from deltalake import DeltaTable


def carried(contract: Contract, table: DeltaTable | None) -> Contract:
    """Add to a contract the retired columns that its table still has; they are written until they are removed.

    A contract that loses the old column before its table has got the new one loses no value either.

    Args:
        contract: Contract of the dataset.
        table: The dataset's table; None if it was never published.

    Returns:
        The contract itself if there are none.
    """
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
        )
        for field in of_delta(json.loads(table.schema().to_json()))
        if field.name in retired
    )
    if not kept:
        return contract
    return replace(contract, columns=(*filled(contract, {column.name for column in kept}), *kept))


def filled(contract: Contract, old: Collection[str]) -> tuple[Column, ...]:
    """Give the new columns of migrations the default that fills the rows which are older than they are.

    Args:
        contract: The contract.
        old: The retired columns that the table has, or gets.

    Returns:
        All columns of the contract.
    """
    defaults = {each.successor: each.forth for each in contract.migrations if each.old in old and each.successor}
    return tuple(replace(column, default=defaults.get(column.name, column.default)) for column in contract.columns)
