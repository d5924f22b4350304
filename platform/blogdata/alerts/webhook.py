"""The channel `webhook`: an HTTP POST of the message as JSON.

It is retried with growing, jittered pauses when the server is busy, broken or unreachable, and the server's
`Retry-After` is respected. Any other answer than success is final: the same request would get it again. A redirect is
such an answer, because following it would turn the POST into a GET and lose the message.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from blogdata.alerts import addresses
from blogdata.alerts.alert import Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.secrets import no_redirect

_BUSY = 429
_REFUSED = (400, 413, 422)
"""Answers about the content of a request; the others are about the address or the secret."""
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Posts messages to an address.

    Args:
        address: `http://` or `https://` address; it may hold a secret.
        token: Sent as `Authorization: Bearer`; None: nothing is sent.
        ca_file: Trusted certificates in PEM; None: the machine's.
    """

    address: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def send(self, message: Message, seconds: float) -> None:
        """Post a message; an answer 2xx means that the server took it.

        Raises:
            ChannelFailed: The server refused it, or was busy, broken or unreachable until the time was over.
        """
        deadline = time.monotonic() + seconds
        body = json.dumps(message.as_json()).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "alerts",
            "Idempotency-Key": message.identity,
            **({} if self.token is None else {"Authorization": f"Bearer {self.token}"}),
        }
        pause = _FIRST_PAUSE_SECONDS
        while True:
            what, least = self._post(body, headers, max(0.1, deadline - time.monotonic()))
            if what is None:
                return
            wait = max(least, pause * random.uniform(0.5, 1.0))
            if time.monotonic() + wait >= deadline:
                raise self._failed(what)
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def check(self, seconds: float) -> None:
        """Check that the server accepts connections.

        Raises:
            ChannelFailed: It does not.
        """
        parts = urlsplit(self.address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((parts.hostname or "", port), timeout=seconds).close()
        except OSError as error:
            raise self._failed(f"no connection: {error}") from error

    def _post(self, body: bytes, headers: dict[str, str], seconds: float) -> tuple[str | None, float]:
        """Post once; return why it may be retried, None after success, and the least pause in seconds."""
        request = urllib.request.Request(self.address, data=body, headers=headers, method="POST")
        opener = no_redirect.opener(self.ca_file)
        try:
            opener.open(request, timeout=seconds).close()
        except urllib.error.HTTPError as error:
            error.close()
            what = f"the server answered {error.code} {error.reason}"
            if error.code != _BUSY and error.code < 500:
                raise self._failed(what, refused=error.code in _REFUSED) from error
            after = error.headers.get("Retry-After", "")
            return what, float(after) if after.isdigit() else 0.0
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            return f"no answer: {reason or type(error).__name__}", 0.0
        return None, 0.0

    def _failed(self, what: str, *, refused: bool = False) -> ChannelFailed:
        return ChannelFailed(
            what=what,
            refused=refused,
            where=f"webhook {addresses.shown(self.address)}",
            next_step="check its address, its secret and whether that server works",
        )
