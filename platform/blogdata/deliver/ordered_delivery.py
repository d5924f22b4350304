"""Ordered delivery: records of one key reach an HTTP API in their order, each once, through failures and crashes.

An orderer (:mod:`.bin_pack_orderer`, :mod:`.fifo_orderer`) decides which records go into the next request; the outbox
(:mod:`.outbox`) numbers them durably. The API may take a bulk call in part, and keeps each record once by its key and
number. Its answer 200 names the records that it did not take; 408, 429, 5xx, a time-out and a lost connection say
nothing, and the request is sent again under the same numbers; other answers are refusals.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

from blogdata.deliver.bin_pack_orderer import BinPacker
from blogdata.deliver.fifo_orderer import Fifo
from blogdata.deliver.outbox import Delivery, Outbox
from blogdata.errors import PlatformError, TransientError
from blogdata.patterns.security.secrets_pointer import Secret, SecretInUse

MOST_RECORDS = 500
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0, 5.0)
"""Seconds between the tries of one request that is not answered."""


class Refused(PlatformError):
    """Raised when the target refuses a request for good; its records keep their numbers."""


class KeyRefused(Refused):
    """Raised when the target refuses the key."""


def deliver(orderer: BinPacker | Fifo, outbox: Outbox, target: HttpTarget) -> int:
    """Deliver all records of an orderer, and return how many were taken."""
    count = 0
    while records := orderer.next():
        outbox.number(records)
        failed = _send(records, outbox, target)
        taken = [record for index, record in enumerate(records) if index not in failed]
        outbox.taken(taken)
        orderer.settle(records, failed)
        count += len(taken)
        if failed:
            time.sleep(0.05)
    return count


def _send(records: Sequence[Delivery], outbox: Outbox, target: HttpTarget) -> Collection[int]:
    for tries, pause in enumerate((*PAUSES, None)):
        try:
            return target.send(records)
        except Refused:
            if not tries:
                # No try before this one may have been taken.
                outbox.refused(records)
            raise
        except TransientError:
            if pause is None:
                raise
            time.sleep(pause)
    raise AssertionError


class HttpTarget:
    """Sends records to `POST <url>/v1/events:batch`, with a bearer token that is read again if it is refused."""

    def __init__(
        self, url: str, *, key: SecretInUse | None, timeout: float, record: Callable[[Delivery], Mapping[str, object]]
    ) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        self._path = f"{parts.path.rstrip('/')}/v1/events:batch"
        self._where = f"{parts.scheme}://{parts.hostname}:{parts.port or ''}{parts.path}"
        self._key, self._record = key, record

    def __enter__(self) -> HttpTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, records: Sequence[Delivery]) -> Collection[int]:
        """Send records in one request, and return the indexes of those that were not taken."""
        body = json.dumps({"records": [self._record(record) for record in records]}, sort_keys=True).encode()
        if self._key is None:
            return self._post(body, len(records), None)
        return self._key.use(partial(self._post, body, len(records)), refused=KeyRefused)

    def _post(self, body: bytes, count: int, key: Secret | None) -> Collection[int]:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key.reveal()}"} if key else {})}
        try:
            # A connection that was closed is opened again.
            self._connection.request("POST", self._path, body, headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise self._undelivered(f"did not answer: {type(error).__name__}") from error
        if answer.status in (408, 429) or answer.status >= 500:
            raise self._undelivered(f"answered {answer.status}")
        if answer.status != 200:
            refusal, what = (KeyRefused, "the key") if answer.status in (401, 403) else (Refused, "a request")
            raise refusal(
                what=f"the partner refused {what}: status {answer.status}",
                where=self._where,
                next_step="correct [partner] of blogdata.toml, its secret or what is sent; the records wait",
            )
        try:
            failed = {int(record["index"]) for record in json.loads(content)["failed"]}
        except (ValueError, KeyError, TypeError) as error:
            raise self._undelivered("gave an answer that cannot be read") from error
        if not failed <= set(range(count)):
            raise self._undelivered("gave an answer that names records that were not sent")
        return failed

    def _undelivered(self, what: str) -> TransientError:
        step = "the records wait, and are sent by the next run"
        return TransientError(what=f"the partner {what}", where=self._where, next_step=step)
