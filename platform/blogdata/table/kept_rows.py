"""Rows that are computed once and kept on the Spark server; what they were computed from stays known (column lineage).

The batch of a stream is kept by the server, too (:func:`let_go`). Spark Connect's client releases it when its plan is
garbage-collected, by a request. In the thread that gRPC starts for another request this deadlocks, because that request
holds the channel's lock until its thread has started (SPARK-55020, SPARK-58846).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def computed(rows: DataFrame, *, of: int | None = None) -> Iterator[DataFrame]:
    """Compute rows once, and keep them on the executors until the block ends; `of` is the number of their input rows.

    Use the yielded rows, and frames derived from them, only within the block.
    """
    view, session = f"kept_{uuid.uuid4().hex}", rows.sparkSession
    known = {} if of is None else {"of": str(of)}
    rows.write.format("kept-rows").mode("append").options(view=view, **known).save()
    try:
        yield session.table(view)
    finally:
        session.catalog.dropTempView(view)


def let_go(rows: DataFrame) -> None:
    """Release rows that the server keeps; their garbage collection then sends no request."""
    from pyspark.sql.connect.plan import CachedRemoteRelation

    plan = getattr(rows, "_plan", None)
    if isinstance(plan, CachedRemoteRelation):
        plan.__del__()
        # The session to which garbage collection would send the release.
        plan._spark_session = None  # type: ignore[assignment]
