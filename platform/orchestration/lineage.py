"""Shows a contract's columns, and the lineage read off Spark's plans, in Dagster's own vocabulary."""

from __future__ import annotations

import dagster as dg

from patterns.core.commit import Commit
from patterns.core.contract import Contract
from patterns.core.lake import Lake
from patterns.observability.fine_grained_tracker import ColumnSource, sources


def column_schema(contract: Contract) -> dg.TableSchema:
    """Give the contract's columns with their descriptions, constraints and classification."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=column.name,
                type=column.type.lower(),
                description=column.description,
                constraints=dg.TableColumnConstraints(
                    nullable=column.nullable, unique=contract.key == (column.name,)
                ),
                tags={"classification": column.classification.value},
            )
            for column in contract.columns
        ],
        constraints=dg.TableConstraints(other=[f"{rule.name}: {rule.expression}" for rule in contract.rules]),
    )


def column_lineage(lake: Lake, landing: str, commit: Commit) -> dg.TableColumnLineage:
    """Give which columns of which datasets each column of a commit was computed from."""
    return dg.TableColumnLineage(
        deps_by_column={
            column: [dg.TableColumnDep(asset_key=_key(source), column_name=source.column) for source in found]
            for column, found in sources(lake, landing, commit).items()
            if found
        }
    )


def _key(source: ColumnSource) -> dg.AssetKey:
    return dg.AssetKey(source.dataset.split(".", 1))
