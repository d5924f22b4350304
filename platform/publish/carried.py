"""The contract under which a table is written while it still has columns that the contract has retired."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from publish.column_types import of_delta
from publish.contract import Contract
from publish.schema import Column

if TYPE_CHECKING:
    from deltalake import DeltaTable


def carried(contract: Contract, table: DeltaTable | None) -> Contract:
    """Add to a contract the retired columns that its table still has; they are written until they are removed.

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
            type=str(field.type),
            nullable=field.nullable,
            description=f"Retired ({retired[field.name]})",
        )
        for field in of_delta(json.loads(table.schema().to_json()))
        if field.name in retired
    )
    return replace(contract, columns=(*contract.columns, *kept)) if kept else contract
