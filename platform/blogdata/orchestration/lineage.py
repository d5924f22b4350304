"""Converts a contract's columns, and the column lineage of Spark's plans, to Dagster metadata."""

from __future__ import annotations

import dagster as dg

from blogdata.lake.commit import Commit
from blogdata.lake.lake import Lake
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource, sources
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Classification, Column


def column_schema(contract: Contract) -> dg.TableSchema:
    """Return the contract's columns with their descriptions, constraints, classification and subject."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=column.name,
                type=column.type.lower(),
                description=column.description,
                constraints=dg.TableColumnConstraints(nullable=column.nullable, unique=contract.key == (column.name,)),
                tags=_tags(column),
            )
            for column in contract.columns
        ],
        constraints=dg.TableConstraints(other=[f"{rule.name}: {rule.expression}" for rule in contract.rules]),
    )


def _tags(column: Column) -> dict[str, str]:
    classification = Classification.PERSONAL if column.personal else column.classification
    tags = {"classification": classification.value}
    if column.subject is not None and column.subject.how is not None:
        tags |= {"subject": column.subject.whose.value, "identifies": column.subject.how.value}
    return tags


def column_lineage(lake: Lake, landing: str, commit: Commit) -> dg.TableColumnLineage:
    """Return, for each column of a commit, the dataset columns it was computed from."""
    return dg.TableColumnLineage(
        deps_by_column={
            column: [dg.TableColumnDep(asset_key=_key(source), column_name=source.column) for source in found]
            for column, found in sources(lake, landing, commit).items()
        }
    )


def _key(source: ColumnSource) -> dg.AssetKey:
    return dg.AssetKey(source.dataset.split(".", 1))
