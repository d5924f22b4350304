"""What a failed step is retried for: transient faults, a few times, after growing waits.

Others retry, too: the daemon a run whose process died (`platform/deploy/dagster.yaml`), Spark's client a call whose
server is gone (`services/spark_session.py`), and the sensors what failed and is still stale
(`sensors/request_throttle.py`).
"""

from __future__ import annotations

import random

import dagster as dg

from errors import PlatformError

MAX_RETRIES = 3


def pause(attempt: int) -> float:
    """Return the backoff in seconds: exponential, with jitter so that two colliding runs do not collide again."""
    seconds: float = 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    return seconds


def failure(context: dg.AssetExecutionContext | dg.OpExecutionContext, error: PlatformError) -> Exception:
    """Return a retry with backoff for a transient fault, up to :data:`MAX_RETRIES`; else a final failure."""
    if error.transient and context.retry_number < MAX_RETRIES:
        wait = pause(context.retry_number + 1)
        context.log.warning(f"{error}\n  (retried in {wait:.1f} s)")
        return dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait)
    return failed(error)


def failed(error: PlatformError) -> dg.Failure:
    """Convert a fault to a Dagster failure without retries."""
    return dg.Failure(
        description=str(error),
        metadata={"what": error.what, "where": error.where, "next step": error.next_step},
        allow_retries=False,
    )
