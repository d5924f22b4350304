"""What a failed step is retried for: transient faults, a few times, after growing waits.

Others retry, too: the daemon a run whose process died (`deploy/dagster.yaml`), Spark's client a call whose server is
gone (`operate/spark_attached.py`), and the sensors what failed and is still stale (`sensors/run_requests.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from blogdata.errors import PlatformError, foreign
from blogdata.ledger.faults import by_reason

MAX_RETRIES = 3


def failure(context: dg.AssetExecutionContext | dg.OpExecutionContext, error: Exception) -> Exception:
    """Return a retry with backoff for a transient fault, up to :data:`MAX_RETRIES`; else a final failure."""
    if isinstance(error, PlatformError) and error.transient and context.retry_number < MAX_RETRIES:
        # With jitter, so that two colliding runs do not collide again.
        wait = 2**context.retry_number * random.uniform(0.5, 1.5)
        context.log.warning(f"{_alone(error)}\n  (retried in {wait:.1f} s)")
        return dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait)
    return failed(error)


@contextmanager
def reported(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> Iterator[None]:
    """Raise any error of the block as :func:`failure` converts it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - raised again
        raise failure(context, error) from None


def failing_after_output(
    work: Callable[[Any], object], outputs: Callable[[Any], Iterable[dg.Output[None]]]
) -> Callable[[Any], Iterator[dg.Output[None]]]:
    """Build a step that yields its outputs before it fails, so that its events are seen; a retry is raised at once.

    What is below it runs after a failure only where the job's executor says so.
    """

    # Dagster takes no annotation for both kinds of contexts.
    def step(context) -> Iterator[dg.Output[None]]:  # type: ignore[no-untyped-def]
        fault: Exception | None = None
        try:
            work(context)
        except dg.RetryRequested:
            raise
        except Exception as error:
            fault = failure(context, error)
            if isinstance(fault, dg.RetryRequested):
                raise fault from error
        yield from outputs(context)
        if fault is not None:
            raise fault

    return step


def failed(error: Exception) -> Exception:
    """Convert a fault to a Dagster failure without retries; exceptions of Dagster are returned as they are."""
    if isinstance(error, dg.DagsterError | dg.Failure | dg.RetryRequested):
        return error
    fault = _alone(error if isinstance(error, PlatformError) else foreign.unforeseen(error))
    return dg.Failure(
        description=str(fault),
        metadata={"what": fault.what, "where": fault.where, "next step": fault.next_step},
        allow_retries=False,
    )


def _alone(error: PlatformError) -> PlatformError:
    """Cut off what caused an error: Dagster stores causes with their messages, and these quote rows."""
    error.__cause__, error.__suppress_context__ = None, True
    return error


def joined(
    faults: Mapping[str, PlatformError], *, where: str, outcome: str, parts: str = "partitions"
) -> PlatformError:
    """Return the error that all partitions have; or one that lists theirs."""
    reasons = by_reason(faults)
    if len(reasons) == 1:
        return next(iter(faults.values()))
    lines = "".join(f"\n    - {', '.join(keys)}: {text}" for text, keys in reasons.items())
    return PlatformError(
        what=f"{len(faults)} {parts} {outcome}, the others are:{lines}",
        where=where,
        next_step="mend each of them as it says, and run it again",
    )
