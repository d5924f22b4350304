"""Rows that are computed once and kept on the Spark server; what they were computed from stays known (column lineage).

Where Spark may not load the engine's jar, they are a local checkpoint, which forgets that, and are released explicitly
instead of by garbage collection.

Spark Connect's client releases them when their plan is garbage-collected: by a request, in whichever thread that
happens. If it happens in the thread that gRPC starts for another request, it deadlocks: that request holds the
channel's lock until its thread has started, and the release waits for the lock in that very thread. The whole process
then hangs (SPARK-55020, SPARK-58846).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blogdata.publish.target import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.plan import CachedRemoteRelation


@contextmanager
def computed(rows: DataFrame, engine: Engine = Engine.TRANSACTION, *, of: int | None = None) -> Iterator[DataFrame]:
    """Compute rows once, and keep them on the executors until the block ends.

    Args:
        engine: Whether Spark may load the engine's jar; without it, the lineage of the rows' columns is lost.
        of: Number of rows that they are computed from; None: unknown. Of few, they are computed with less ado.

    Yields:
        The same rows. Use them, and frames derived from them, only within the block.
    """
    if engine is Engine.TRANSACTION:
        view, session = f"kept_{uuid.uuid4().hex}", rows.sparkSession
        known = {} if of is None else {"of": str(of)}
        rows.write.format("kept-rows").mode("append").options(view=view, **known).save()
        try:
            yield session.table(view)
        finally:
            session.catalog.dropTempView(view)
        return
    kept = rows.localCheckpoint()
    plan = _kept_by_a_server(kept)
    if plan is not None:
        # The client binds them to the process's default session, which may be another one than that of the rows.
        kept = rows.sparkSession._create_remote_dataframe(plan._relation_id)  # type: ignore[attr-defined]
        _forgotten(plan)
    try:
        yield kept
    finally:
        let_go(kept)


def let_go(rows: DataFrame) -> None:
    """Release rows that the server keeps; their garbage collection then sends no request."""
    plan = _kept_by_a_server(rows)
    if plan is not None:
        plan.__del__()
        _forgotten(plan)


def _kept_by_a_server(rows: DataFrame) -> CachedRemoteRelation | None:
    from pyspark.sql.connect.plan import CachedRemoteRelation

    plan = getattr(rows, "_plan", None)
    return plan if isinstance(plan, CachedRemoteRelation) else None


def _forgotten(plan: CachedRemoteRelation) -> None:
    # The session to which garbage collection would send the release.
    plan._spark_session = None  # type: ignore[assignment]
