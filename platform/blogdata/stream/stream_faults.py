"""Errors of streams, passed from the worker process to the client.

Spark passes on only the text of an error, so the fault is written into it as JSON after a marker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from blogdata.errors import PlatformError, TransientError, foreign
from blogdata.table.audit import Violation
from blogdata.table.faults import AuditFailed

_FAULT = "[BLOGDATA_FAULT]"
_WORKER_LATE = "Python worker failed to connect back"


class StreamFailed(PlatformError):
    """Raised when a batch of a stream failed."""


def packed(error: PlatformError) -> str:
    """Serialize a fault to an error text that Spark passes on."""
    violations = [vars(item) for item in error.violations] if isinstance(error, AuditFailed) else []
    texts = {"what": error.what, "where": error.where, "next_step": error.next_step}
    fields = {**texts, "transient": error.transient, "violations": violations}
    return f"{_FAULT} {json.dumps(fields, default=str)}"


@contextmanager
def unpacked(name: str) -> Iterator[None]:
    """Raise an error of a stream's batch: a refused publication, a transient one, or another one."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        try:
            fields, _ = json.JSONDecoder().raw_decode(text.partition(_FAULT)[2].lstrip())
        except json.JSONDecodeError:
            # No marker, or the message was truncated in transit.
            late = _WORKER_LATE in text
            if not late and "STREAM_FAILED" not in text:
                raise error from None
            raise unforeseen(name, error, kind=TransientError if late else StreamFailed) from error
        if violations := [Violation(**item) for item in fields.pop("violations")]:
            raise AuditFailed(fields["where"], violations) from error
        kind = TransientError if fields.pop("transient") else StreamFailed
        raise kind(**fields) from error


def unforeseen(name: str, error: Exception, batch: str = "", kind: type[PlatformError] = StreamFailed) -> PlatformError:
    return kind(
        what=f"the stream '{name}' ended: {batch}{foreign.unquoted(error)}",
        where=name,
        next_step="run it again: a batch that was cut off is done again and published once; when it repeats, the "
        "server's log, in services/spark of the deployment's folder, has more",
    )
