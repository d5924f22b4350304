"""An HTTP API as the target of an ordered delivery: a bulk call that may be taken in part.

The target keeps each record once by its key and number, however often it is sent. Its answer 200 names the records
that it did not take; 408, 429, 5xx, a time-out and a lost connection say nothing; other answers are refusals.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from blogdata.errors import PlatformError
from blogdata.patterns.data_value.ordered_delivery import Refused, Undelivered
from blogdata.patterns.data_value.outbox import Delivery
from blogdata.secrets.secret import Secret
from blogdata.secrets.secrets_pointer import SecretInUse

MOST_RECORDS = 500
"""Most records of a call."""
_LONGEST_WAIT = 3600.0
Fault = TypeVar("Fault", bound=PlatformError)
_REPEATED = "the records wait, and are sent by the next run"


class KeyRefused(Refused):
    """Raised when the target refuses the key."""


class HttpTarget:
    """Sends records to `POST <url>/v1/events:batch`.

    Args:
        key: Bearer token, read again if it is refused; None if the target needs none.
    """

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
        """Send a request; see :class:`blogdata.patterns.data_value.ordered_delivery.Receiver`."""
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
            place = self._key.pointer.place if self._key else "name it in [partner] of blogdata.toml"
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
