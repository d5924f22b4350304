"""An HTTP API as the target of an ordered delivery: a bulk call that may be taken in part, and single calls.

Every call has an `Idempotency-Key`. What the target answers decides what is known: 200 names the failed records; 429
took nothing; 5xx, a time-out and a lost connection may have taken the request; other answers are refusals.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from blogdata.errors import PlatformError
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.data_value.ordered_delivery import NotTaken, Refused, Undelivered
from blogdata.patterns.data_value.outbox_account import Delivery, DeliveryRequest
from blogdata.secrets.secret import Secret
from blogdata.secrets.secrets_pointer import SecretInUse

MOST_RECORDS = 500
"""Most records of a bulk call."""
_LONGEST_WAIT = 3600.0


class KeyRefused(Refused):
    """Raised when the target refuses the key."""


def told(one: Delivery) -> Mapping[str, Any]:
    """Return what is sent of a record; only a correction has the field `correction`."""
    computed = {"key": one.key, "sequence": one.sequence, **({"correction": True} if one.correction else {})}
    return wrapper.envelope(json.loads(one.payload), computed, field="payload")


class HttpTarget:
    """Sends requests to `POST <url>/v1/events:batch` and `POST <url>/v1/events`.

    Args:
        key: Bearer token, read again if it is refused; None if the target needs none.
        timeout: Seconds to wait for an answer.
    """

    def __init__(
        self,
        url: str,
        *,
        key: SecretInUse | None,
        timeout: float,
        record: Callable[[Delivery], Mapping[str, Any]] = told,
    ) -> None:
        self._parts = urlsplit(url)
        self._key = key
        self._timeout = timeout
        self._record = record
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> HttpTarget:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def send(self, request: DeliveryRequest) -> Mapping[int, str]:
        """Send a request; see :class:`blogdata.patterns.data_value.ordered_delivery.Receiver`."""
        if self._key is None:
            return self._send(request, None)
        return self._key.use(partial(self._send, request), refused=KeyRefused)

    def _send(self, request: DeliveryRequest, key: Secret | None) -> Mapping[int, str]:
        records = [self._record(one) for one in request.records]
        path = "/v1/events:batch" if request.bulk else "/v1/events"
        body = json.dumps({"records": records} if request.bulk else records[0], sort_keys=True).encode()
        status, headers, content = self._post(path, body, request.id, key)
        if status == 429:
            raise self._not_taken(headers)
        if status == 408 or status >= 500:
            raise self._fault(Undelivered, f"the partner answered {status}")
        if status in (401, 403):
            place = "name it in [partner] of blogdata.toml" if self._key is None else self._key.pointer.place
            step = f"check its secret, {place}; the records wait"
            raise self._fault(KeyRefused, f"the partner refused the key: status {status}", step)
        if status != 200:
            raise self._fault(
                Refused,
                f"the partner refused a request of {len(records)} records: status {status}",
                "correct the address or what is sent; the records wait",
            )
        return self._failed(content, len(records)) if request.bulk else {}

    def _post(self, path: str, body: bytes, identity: str, key: Secret | None) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"Content-Type": "application/json", "Idempotency-Key": identity}
        if key is not None:
            headers["Authorization"] = f"Bearer {key.reveal()}"
        connection = self._connected()
        try:
            connection.request("POST", self._parts.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._connection = None
            raise self._fault(Undelivered, f"the partner did not answer: {type(error).__name__}") from error

    def _connected(self) -> http.client.HTTPConnection:
        connection = self._connection
        if connection is None or connection.sock is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)
            try:
                connection.connect()
            except OSError as error:
                # Nothing was sent yet.
                raise self._fault(NotTaken, f"the partner cannot be reached: {error}") from error
            self._connection = connection
        return connection

    def _not_taken(self, headers: Mapping[str, str]) -> NotTaken:
        error = self._fault(NotTaken, "the partner takes no more requests for now")
        assert isinstance(error, NotTaken)
        with contextlib.suppress(KeyError, ValueError):
            error.wait_seconds = min(max(0.0, float(headers["retry-after"])), _LONGEST_WAIT)
        return error

    def _failed(self, content: bytes, count: int) -> Mapping[int, str]:
        try:
            found: Any = json.loads(content)
            failed = {int(one["index"]): str(one["code"]) for one in found["failed"]}
        except (ValueError, KeyError, TypeError) as error:
            raise self._fault(Undelivered, "the partner's answer cannot be read") from error
        if not failed.keys() <= set(range(count)):
            raise self._fault(Undelivered, "the partner's answer names records that were not sent")
        return failed

    def _fault(self, kind: type[PlatformError], what: str, next_step: str = "") -> PlatformError:
        where = f"{self._parts.scheme}://{self._parts.hostname}:{self._parts.port or ''}{self._parts.path}"
        return kind(what=what, where=where, next_step=next_step or "the records wait, and are sent by the next run")
