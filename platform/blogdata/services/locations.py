"""Asks where addresses are: a geolocation service over HTTP, or the embedded country table if none is configured."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any, Protocol

import iptocc

from blogdata.errors import PlatformError, foreign
from blogdata.secrets import no_redirect
from blogdata.secrets.secret import Secret
from blogdata.secrets.secrets_pointer import SecretInUse
from blogdata.services import secrets
from blogdata.services.answer_journal import AnswerJournal
from blogdata.services.config import Settings

AT_MOST = 100
"""Addresses that one request may ask for."""
_TRIES = 6
_LONGEST_PAUSE = 30.0
_LONGEST_WANTED_PAUSE = 60.0
"""A step waits no longer for a service that says when to come back; its next run asks again."""
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
UNUSABLE = "unusable"
"""Outcome of an address whose answer makes no sense: it is asked for again when the journal has forgotten it."""
_OUTCOMES = {"unknown": "unknown", "private": "reserved"}
"""What the service says of an address without a place, and its outcome; `private` would read like a visitor's wish."""


class LocationsUnavailable(PlatformError):
    """Raised when the service does not answer, after several tries or for longer than a step waits."""

    transient = True


class LocationsRefused(PlatformError):
    """Raised when the service refuses the request itself."""


class LocationKeyRefused(LocationsRefused):
    """Raised when the service refuses the key."""


@dataclass(frozen=True, kw_only=True)
class Location:
    """The answer for one address.

    Args:
        outcome: `found`, `unknown`, `reserved`, or :data:`UNUSABLE`.
        country: Country code (ISO 3166-1 alpha-2); None unless found.
        region: Name of the region, if known.
        city: Name of the city, if known.
        valid_until: First instant it no longer holds, ISO 8601 with a zone; None: it is not limited.
    """

    outcome: str
    country: str | None = None
    region: str | None = None
    city: str | None = None
    valid_until: str | None = None


class Locator(Protocol):
    """Answers where addresses are."""

    @property
    def paid(self) -> bool:
        """Whether every question costs money, so that answers must survive a crash."""

    def locate(self, addresses: Sequence[str]) -> Mapping[str, Location]:
        """Return the answers for at most :data:`AT_MOST` addresses; an address without an answer is missing."""


@dataclass(frozen=True, kw_only=True)
class EmbeddedTable:
    """The country table inside the package `iptocc`, from the regional registries; it knows countries only."""

    paid: bool = False

    def locate(self, addresses: Sequence[str]) -> Mapping[str, Location]:
        """Look the addresses up; nothing leaves the process."""
        codes = iptocc.country_code(list(addresses))
        return {
            address: Location(outcome="found", country=code) if code else Location(outcome="unknown")
            for address, code in zip(addresses, codes, strict=True)
        }


@dataclass(kw_only=True)
class LocationService:
    """A geolocation service that is asked over HTTP, in bulk and within a rate; failed requests are repeated.

    A request that the service took and did not answer is paid for and asked again: nothing in its protocol would tell.

    Args:
        url: Root address.
        key: Sent as bearer token, and read again if it is refused; None: no key.
        rate: Most requests a second.
        time_out: How long to wait for an answer, in seconds.
        pause: How long to wait before the second try, in seconds; it doubles with each try.
    """

    url: str
    key: SecretInUse | None = None
    rate: float = 10.0
    time_out: float = 10.0
    pause: float = 0.5
    paid: bool = True
    _next: float = field(default=0.0, init=False)

    def locate(self, addresses: Sequence[str]) -> Mapping[str, Location]:
        """Ask the service.

        Raises:
            LocationsUnavailable: It did not answer, after several tries, or wants a pause longer than a minute.
            LocationsRefused: It refuses the request or the key.
        """
        pause, reason = self.pause, ""
        for attempt in range(_TRIES):
            self._wait_for_turn()
            wanted = 0.0
            try:
                return _answers(self._asked({"ips": list(addresses)}), addresses)
            except urllib.error.HTTPError as error:
                reason, wanted = f"status {error.code}", _wanted_pause(error)
                error.close()
                if error.code != 429 and error.code < 500:
                    raise LocationsRefused(
                        what=f"the geolocation service refuses the request: {reason}",
                        where=self.url,
                        next_step="check its address, section [geolocation] of blogdata.toml",
                    ) from error
                if wanted > _LONGEST_WANTED_PAUSE:
                    raise self._unavailable(f"{reason}, it wants a pause of {wanted:g} seconds") from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = foreign.unquoted(error)
            if attempt + 1 < _TRIES:
                time.sleep(max(wanted, min(pause, _LONGEST_PAUSE)))
            pause *= 2
        raise self._unavailable(f"{reason}, {_TRIES} tries")

    def _unavailable(self, reason: str) -> LocationsUnavailable:
        return LocationsUnavailable(
            what=f"the geolocation service does not answer ({reason})",
            where=self.url,
            next_step="visits go on without their place; they are replaced when it answers",
        )

    def _wait_for_turn(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + 1 / self.rate

    def _asked(self, content: Mapping[str, Any]) -> Any:
        if self.key is None:
            return self._post(content, None)
        return self.key.use(partial(self._post, content), refused=LocationKeyRefused)

    def _post(self, content: Mapping[str, Any], key: Secret | None) -> Any:
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/v1/locations",
            data=json.dumps(content).encode(),
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {key.reveal()}"} if key else {}),
            },
        )
        try:
            with no_redirect.opener().open(request, timeout=self.time_out) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (401, 403):
                raise
            error.close()
            raise LocationKeyRefused(
                what=f"the geolocation service refuses the key: status {error.code}",
                where=self.url,
                next_step=f"check the secret at {self.key.pointer.place}"
                if self.key
                else 'name its key in [geolocation] of blogdata.toml: secret = "geolocation"',
            ) from error


def locator_of(settings: Settings) -> Locator:
    """Return what a deployment asks: its service, or the embedded table.

    Raises:
        ConfigurationError: The service's key cannot be read.
    """
    chosen = settings.geolocation
    if chosen.url is None:
        return EmbeddedTable()
    key = SecretInUse(secrets.pointer(settings, chosen.secret)) if chosen.secret else None
    return LocationService(url=chosen.url, key=key, rate=chosen.rate, time_out=chosen.time_out)


def question_of(address: str, valid_from: datetime) -> str:
    """Name a question in the journal: the same address is another question when its answer has expired."""
    return f"{address} {valid_from.isoformat()}"


def journal_of(settings: Settings) -> AnswerJournal:
    """Return where a deployment stores the answers it has paid for."""
    return AnswerJournal(path=settings.home / "geolocation.sqlite")


def _wanted_pause(error: urllib.error.HTTPError) -> float:
    """Return the seconds in `Retry-After`; 0 without them: its other form, a date, depends on the service's clock."""
    text = error.headers.get("Retry-After", "").strip()
    return float(text) if _SECONDS.fullmatch(text) else 0.0


def _answers(content: Any, asked: Sequence[str]) -> Mapping[str, Location]:
    """Read an answer; results that were not asked for are left out."""
    if not isinstance(content, dict) or not isinstance(content.get("results"), list):
        raise ValueError("the answer has no list of results")
    found = {}
    for result in content["results"]:
        address = result.get("ip") if isinstance(result, dict) else None
        if address in asked:
            # It is paid for, whatever it says.
            found[str(address)] = _location(result) or Location(outcome=UNUSABLE)
    return found


def _location(result: Mapping[str, Any]) -> Location | None:
    if "error" in result:
        outcome = _OUTCOMES.get(str(result["error"]))
        return Location(outcome=outcome) if outcome else None
    texts = [result.get(name) for name in ("country", "region", "city")]
    if not texts[0] or not all(value is None or isinstance(value, str) for value in texts):
        return None
    country, region, city = texts
    until = result.get("valid_until")
    try:
        instant = None if until is None else datetime.fromisoformat(str(until).replace("Z", "+00:00"))
    except ValueError:
        return None
    if instant is not None and instant.tzinfo is None:
        instant = instant.replace(tzinfo=timezone.utc)
    return Location(
        outcome="found",
        country=country,
        region=region,
        city=city,
        valid_until=None if instant is None else instant.isoformat(),
    )
