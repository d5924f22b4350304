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


def as_table(lineage: dg.TableColumnLineage, contract: Contract) -> dg.TableMetadataValue:
    """Format column lineage as a table: open-source Dagster stores column lineage, but only the hosted UI draws it."""
    why_none = {column.name: column.sourceless for column in contract.columns}
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "column": column,
                    "computed_from": ", ".join(f"{'.'.join(dep.asset_key.path)}.{dep.column_name}" for dep in deps)
                    or f"no column: {why_none.get(column) or 'a count of rows, or a constant'}",
                }
            )
            for column, deps in lineage.deps_by_column.items()
        ]
    )


def _key(source: ColumnSource) -> dg.AssetKey:
    return dg.AssetKey(source.dataset.split(".", 1))
