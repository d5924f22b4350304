"""Metadata Decorator: the technical context of data is kept with it, and out of its consumers' sight.

Problem: a figure is wrong, and the engineer needs the run, the code and the attempt that wrote it; the
analyst who reads the table next to it needs none of these columns, and builds a report on one of them.

How it works: the writer puts the run, job, code version, trigger and attempt into the commit of every
publication; nothing is repeated on each row. :func:`context_table` joins to any dataset by dataset and
partition, because a partition is published whole. :func:`consumer_view` hides what is personal or
technical. Both are also written as SQL views that any Spark or DuckDB can have (:mod:`.lake_views`).

The trap: context in columns is wide, repeated a million times, and becomes an interface the moment it is
visible. Context in the commit alone is lost with the log's retention: the event log keeps it.

When not to use it: where consumers need the context row by row, as with rows of several runs in one
partition; then a Wrapper puts it beside the row.

Source: Data Engineering Design Patterns, ch. 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from errors import ConfigurationError
from evidence.events import EVENTS, PUBLICATION
from lake.lake import Lake
from publish.contract import Contract
from publish.schema import Classification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TECHNICAL = frozenset(
    "raw source_file source_offset arrival_hour load_date format reasons occurrences conflicts batch".split()
)
"""Columns that say how a row came to be, not what happened."""
PUBLICATIONS = "ops.publications"
"""Name of the context table."""
CONSUMERS = "_public"
"""Ending of the name of a dataset's view for consumers."""
IS_PUBLICATION = f"kind = '{PUBLICATION}'"
"""Which rows of the event log make up the context table, as SQL."""
CONTEXT = {
    **{name: name for name in ("dataset", "partition", "table_version", "run_id", "code_version")},
    "job": "get_json_object(payload, '$.run.job')",
    "trigger": "get_json_object(payload, '$.run.trigger')",
    "attempt": "CAST(get_json_object(payload, '$.run.attempt') AS INT)",
    "published_at": "recorded_at",
    "current": "table_version = max(table_version) OVER (PARTITION BY dataset, partition)",
}
"""Columns of the context table, as SQL over the event log."""


def context_table(spark: SparkSession, lake: Lake, version: int | None = None) -> DataFrame:
    """Read the execution of every publication as a table that joins to any dataset by dataset and partition.

    Args:
        spark: The session.
        lake: The tables' root.
        version: Version of the event log; None is the newest.

    Returns:
        dataset STRING, partition STRING, table_version BIGINT, run_id STRING, code_version STRING,
        job STRING, trigger STRING, attempt INT, published_at TIMESTAMP, current BOOLEAN (true for the newest
        publication of a partition).

    Raises:
        DatasetMissing: Nothing has ever been published.
    """
    selected = [f"{expression} AS {name}" for name, expression in CONTEXT.items()]
    return lake.read(spark, EVENTS, version).where(IS_PUBLICATION).selectExpr(*selected)


def visible(contract: Contract) -> tuple[str, ...]:
    """List the columns a consumer may see (not personal) and build on (not technical), in the contract's order.

    Args:
        contract: What is promised; technical columns of its key, and its partition column, are visible.
    """
    needed = {*contract.key, contract.partition_column}
    return tuple(
        column.name
        for column in contract.columns
        if column.classification is not Classification.PERSONAL
        and (column.name in needed or column.name not in TECHNICAL)
    )


def consumer_view(frame: DataFrame, contract: Contract) -> DataFrame:
    """Hide the columns a consumer must not see (personal) or must not build on (technical).

    Args:
        frame: Rows of the dataset.
        contract: What is promised; a column that is not in it is hidden too.

    Returns:
        The frame with the columns that are left, in the order of the contract.

    Raises:
        ConfigurationError: Nothing is left.
    """
    shown = [name for name in visible(contract) if name in frame.columns]
    if not shown:
        raise ConfigurationError(
            what="every column of the dataset is personal or technical",
            where=contract.dataset,
            next_step="classify the columns a consumer may see, or do not offer a view of this dataset",
        )
    return frame.select(*[f"`{name}`" for name in shown])
