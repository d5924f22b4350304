"""Ordered delivery: records of one key reach an HTTP API in their order, each once, through failures and crashes.

An orderer (:mod:`.bin_pack_orderer`, :mod:`.fifo_orderer`) decides which records go into the next request; the outbox
(:mod:`.outbox`) numbers them durably. The API may take a bulk call in part, and keeps each record once by its key and
number. Its answer 200 names the records that it did not take; 408, 429, 5xx, a time-out and a lost connection say
nothing, and the request is sent again under the same numbers; other answers are refusals.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from blogdata.errors import PlatformError
from blogdata.patterns.data_value.outbox import Delivery, Outbox
from blogdata.secrets.secrets_pointer import Secret, SecretInUse

MOST_TRIES = 50
"""Times a record may fail in one execution; after that it waits for the next one."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0


class Undelivered(PlatformError):
    """Raised when a target did not take a request, or its answer is not known: it is to be repeated."""

    transient = True
    wait_seconds = 0.0
    """How long the target asks to wait."""


class Refused(PlatformError):
    """Raised when the target refuses a request for good; none of its records was taken by it."""

    at_once = False
    """No try before it may have been taken."""


class Orderer(Protocol):
    """Decides which records go into the next request."""

    def next(self) -> Sequence[Delivery]:
        """Return the records of the next request; empty if there are none to be sent."""

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        """Take the outcome of a request; the failed records come again, before the next ones of their keys."""


def deliver(orderer: Orderer, outbox: Outbox, target: HttpTarget, *, patience: float) -> int:
    """Deliver all records of an orderer, each request tried for `patience` seconds, and return how many were taken."""
    count = 0
    while records := orderer.next():
        outbox.number(records)
        try:
            failed = _send(records, target, patience)
        except Refused as error:
            if error.at_once:
                outbox.refused(records)
            raise
        taken = [record for index, record in enumerate(records) if index not in failed]
        outbox.taken(taken)
        orderer.settle(records, failed)
        count += len(taken)
        if failed:
            time.sleep(_FIRST_PAUSE)
    return count


def _send(records: Sequence[Delivery], target: HttpTarget, patience: float) -> Collection[int]:
    deadline, pause, at_once = time.monotonic() + patience, _FIRST_PAUSE, True
    while True:
        try:
            return target.send(records)
        except Refused as error:
            error.at_once = at_once
            raise
        except Undelivered as error:
            at_once = False
            seconds = max(pause, error.wait_seconds)
            if time.monotonic() + seconds > deadline:
                raise
        time.sleep(seconds)
        pause = min(2 * pause, _LONGEST_PAUSE)


MOST_RECORDS = 500
_LONGEST_WAIT = 3600.0
Fault = TypeVar("Fault", bound=PlatformError)
_REPEATED = "the records wait, and are sent by the next run"


class KeyRefused(Refused):
    """Raised when the target refuses the key."""


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
        body = json.dumps({"records": [self._record(one) for one in records]}, sort_keys=True).encode()
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
            raise self._fault(Undelivered, f"the partner did not answer: {type(error).__name__}") from error
        if answer.status in (408, 429) or answer.status >= 500:
            fault = self._fault(Undelivered, f"the partner answered {answer.status}")
            with contextlib.suppress(ValueError):
                fault.wait_seconds = min(max(0.0, float(answer.headers.get("Retry-After", "0"))), _LONGEST_WAIT)
            raise fault
        if answer.status in (401, 403):
            place = self._key.pointer.file() if self._key else "name it in [partner] of blogdata.toml"
            step = f"check its secret, {place}; the records wait"
            raise self._fault(KeyRefused, f"the partner refused the key: status {answer.status}", step)
        if answer.status != 200:
            what = f"the partner refused a request of {count} records: status {answer.status}"
            raise self._fault(Refused, what, "correct the address or what is sent; the records wait")
        return self._failed(content, count)

    def _failed(self, content: bytes, count: int) -> Collection[int]:
        try:
            failed = {int(one["index"]) for one in json.loads(content)["failed"]}
        except (ValueError, KeyError, TypeError) as error:
            raise self._fault(Undelivered, "the partner's answer cannot be read") from error
        if not failed <= set(range(count)):
            raise self._fault(Undelivered, "the partner's answer names records that were not sent")
        return failed

    def _fault(self, kind: type[Fault], what: str, next_step: str = _REPEATED) -> Fault:
        return kind(what=what, where=self._where, next_step=next_step)
