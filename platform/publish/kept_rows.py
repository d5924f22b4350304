"""Rows that Spark keeps for a while, and that are let go of where it is safe to.

Spark Connect's client lets go of them when it collects their plan as garbage: by a request, in whichever thread that
happens. In the thread that gRPC starts for another request, which holds the channel's lock until it has begun, this
one waits for the lock for ever, and with it whatever the process does (SPARK-55020, SPARK-58846).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.plan import CachedRemoteRelation


@contextmanager
def computed(rows: DataFrame) -> Iterator[DataFrame]:
    """Compute rows once, and keep them on the executors until the block ends.

    Args:
        rows: Any.

    Yields:
        The same rows; whatever is derived from them is to be used within the block, too.
    """
    kept = rows.localCheckpoint()
    plan = _kept_by_a_server(kept)
    if plan is not None:
        # The client has them belong to the session that is the process's default, which may be another one.
        kept = rows.sparkSession._create_remote_dataframe(plan._relation_id)  # type: ignore[attr-defined]
        _forgotten(plan)
    try:
        yield kept
    finally:
        let_go(kept)


def let_go(rows: DataFrame) -> None:
    """Have the server forget rows that it keeps under a name; nothing is left to do when they are collected.

    Args:
        rows: As the server's name for them came; others, and those of a session without a server, are left alone.
    """
    plan = _kept_by_a_server(rows)
    if plan is not None:
        plan.__del__()
        _forgotten(plan)


def _kept_by_a_server(rows: DataFrame) -> CachedRemoteRelation | None:
    from pyspark.sql.connect.plan import CachedRemoteRelation

    plan = getattr(rows, "_plan", None)
    return plan if isinstance(plan, CachedRemoteRelation) else None


def _forgotten(plan: CachedRemoteRelation) -> None:
    # Whom it would tell when it is collected.
    plan._spark_session = None  # type: ignore[assignment]
