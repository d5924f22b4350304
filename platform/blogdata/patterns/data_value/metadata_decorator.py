"""Metadata Decorator: the technical context of data is stored with it, but hidden from its consumers.

Problem: a figure is wrong, and the engineer needs the run, the code version and the attempt that wrote it. As columns
of the table they end up in an analyst's report.
How it works: the writer records the run, job, code version, trigger and attempt
(:class:`blogdata.table.target.RunContext`) in the commit of every publication. :func:`context_table` joins to any
dataset by dataset and partition, because a partition is published whole.
:func:`blogdata.contract.privacy.consumer_view` hides personal and technical columns. Both are also written as SQL views
for any Spark or DuckDB (:mod:`.lake_views`).
The trap: context in columns is wide, repeated a million times, and becomes an interface as soon as it is visible.
Context in the commit alone is lost when the log's retention expires: the event log keeps it.
When not to use it: where consumers need the context per row; then a Wrapper puts it beside the row.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blogdata.ledger.events import EVENTS, PUBLICATION
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUBLICATIONS = "ops.publications"
IS_PUBLICATION = f"kind = '{PUBLICATION}'"
"""SQL condition that selects the rows of the event log for the context table."""
CONTEXT = {
    **{name: name for name in ("dataset", "partition", "table_version", "run_id", "code_version")},
    "job": "get_json_object(payload, '$.run.job')",
    "trigger": "get_json_object(payload, '$.run.trigger')",
    "event": "get_json_object(payload, '$.run.event')",
    "attempt": "CAST(get_json_object(payload, '$.run.attempt') AS INT)",
    "published_at": "recorded_at",
    "current": "table_version = max(table_version) OVER (PARTITION BY dataset, partition)",
}
"""Columns of the context table: name to SQL expression over the event log."""


def context_table(spark: SparkSession, lake: Lake, version: int | None = None) -> DataFrame:
    """Read the run context of every publication: the columns of :data:`CONTEXT`."""
    selected = [f"{expression} AS {name}" for name, expression in CONTEXT.items()]
    return lake.read(spark, EVENTS, version).where(IS_PUBLICATION).selectExpr(*selected)
