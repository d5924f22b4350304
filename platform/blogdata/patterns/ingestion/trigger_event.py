"""The event of an External Trigger: what it must contain, and the reasons to refuse it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar

from blogdata.errors import PlatformError
from blogdata.patterns.ingestion.readiness_marker import start_of_key
from blogdata.publish.partitions import Grain

MOST_BYTES = 64 * 1024
"""Size limit of an event; larger data belongs into a payload, to which the event refers."""
_MOST_DATASETS = 100
# It becomes the tag of a run, and databases limit what they can index.
_MOST_PAYLOAD_BYTES = 2000
_ID = re.compile(r"[!-~]{1,200}")
_SOURCE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DATASET = re.compile(r"[A-Za-z0-9_.]{1,200}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-]\d\d:\d\d))")
_REQUIRED = ("id", "source", "time")
_OPTIONAL = ("payload", "datasets", "span")
_EXAMPLE = (
    'send an object like {"id": "release-42", "source": "shop", "time": "2026-01-05T10:00:00Z", '
    '"datasets": ["layer.table"]}'
)


class EventRefused(PlatformError):
    """Raised when an event starts no run: it is forged, malformed, too old, or requests what it may not."""

    kind: ClassVar[str] = "refused"

    def __init_subclass__(cls, *, kind: str) -> None:
        cls.kind = kind


class Forged(EventRefused, kind="forged"):
    """Raised when the token of an event is missing, or belongs to no sender."""


class NotPermitted(EventRefused, kind="not permitted"):
    """Raised when a known sender uses another sender's name or channel, or requests datasets it may not."""


class Malformed(EventRefused, kind="malformed"):
    """Raised when an event has missing, unknown or unusable fields, or requests nothing."""


class Undeclared(EventRefused, kind="undeclared"):
    """Raised when an event names datasets that no contract declares."""


class WrongTime(EventRefused, kind="wrong time"):
    """Raised when the time of an event is too old, as that of a replayed one, or in the future."""


class SpanTooLong(EventRefused, kind="span too long"):
    """Raised when an event requests more days or hours than the settings allow."""


class TooLarge(EventRefused, kind="too large"):
    """Raised when an event is larger than :data:`MOST_BYTES`."""


class IdReused(EventRefused, kind="id reused"):
    """Raised when another event of the same source had the same id."""


@dataclass(frozen=True, kw_only=True)
class TriggerEvent:
    """An event from outside. `id`, `source` and `time` have the meaning they have in CloudEvents.

    Args:
        id: Identifier, unique within its source: a second event with the same id is the same event.
        source: Name of the sender.
        time: When it happened, in UTC.
        payload: Reference to the data it announces, such as a path or an address; recorded, never opened.
        datasets: Datasets to run.
        span: Days or hours to run again, `first..end` in UTC, without the end; empty: only what is stale.
    """

    id: str
    source: str
    time: datetime
    payload: str = ""
    datasets: tuple[str, ...] = ()
    span: str = ""

    @property
    def key(self) -> str:
        """Identity among the events of all sources."""
        return f"{self.source}/{self.id}"

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """Start and end of the span, in UTC; None without a span."""
        return _window(self.span) if self.span else None

    @property
    def request(self) -> str:
        """What it requests, as display text."""
        return " ".join(filter(None, (", ".join(self.datasets) or "all datasets", self.span)))

    @property
    def digest(self) -> str:
        """Digest of its content, independent of the order and spacing of its fields."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:32]

    def text(self) -> str:
        """Return the event as JSON that :func:`parse` accepts."""
        fields = {
            "id": self.id,
            "source": self.source,
            "time": self.time.isoformat(),
            **({"payload": self.payload} if self.payload else {}),
            **({"datasets": list(self.datasets)} if self.datasets else {}),
            **({"span": self.span} if self.span else {}),
        }
        return json.dumps(fields, sort_keys=True)


def parse(body: bytes) -> TriggerEvent:
    """Parse an event.

    Args:
        body: A JSON object in UTF-8.

    Raises:
        Malformed: A field is missing, unknown or unusable, or nothing is requested.
    """
    fields = _object(body)
    if unknown := sorted(set(fields) - {*_REQUIRED, *_OPTIONAL}):
        raise malformed(f"it has unknown fields: {', '.join(ascii(name[:40]) for name in unknown[:5])}", "the event")
    if absent := [name for name in _REQUIRED if name not in fields]:
        raise malformed(f"it has no {', '.join(absent)}", "the event")
    event = TriggerEvent(
        id=_matching(fields, "id", _ID, "1 to 200 printable ASCII characters without a space"),
        source=_matching(fields, "source", _SOURCE, "1 to 64 letters, digits, dots, hyphens and underscores"),
        time=_time(fields["time"]),
        payload=_payload(fields.get("payload", "")),
        datasets=_datasets(fields.get("datasets", [])),
        span=_span(fields.get("span", "")),
    )
    if not event.datasets and not event.span:
        raise malformed("it requests nothing: it has neither datasets nor a span", "the event")
    return event


def malformed(what: str, where: str) -> Malformed:
    """Build the error of an unusable event, with an example of a usable one."""
    return Malformed(what=what, where=where, next_step=_EXAMPLE)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise malformed(f"it is not JSON in UTF-8: {str(error)[:200]}", "the event") from error
    if not isinstance(found, dict):
        raise malformed("it is not a JSON object", "the event")
    return found


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field occurs twice")
    return found


def _matching(fields: Mapping[str, Any], name: str, form: re.Pattern[str], description: str) -> str:
    value = fields[name]
    if not isinstance(value, str) or not form.fullmatch(value):
        raise malformed(f"its {name} is not a text of {description}", name)
    return value


def _time(value: Any) -> datetime:
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise malformed("its time is not like 2026-01-05T10:00:00Z, with a time zone", "time")
    moment, fraction, offset = match.groups()
    try:
        local = datetime.fromisoformat(f"{moment.upper()}{(fraction or '.0')[:7].ljust(7, '0')}{offset or '+00:00'}")
        return local.astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        raise malformed(f"its time does not exist: {error}", "time") from error


def _payload(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value.encode()) > _MOST_PAYLOAD_BYTES:
        raise malformed(f"its payload is not a reference: a line of at most {_MOST_PAYLOAD_BYTES} bytes", "payload")
    return value


def _datasets(value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [None]
    if len(names) > _MOST_DATASETS or not all(isinstance(name, str) and _DATASET.fullmatch(name) for name in names):
        raise malformed(f"its datasets are not a list of at most {_MOST_DATASETS} names", "datasets")
    return tuple(dict.fromkeys(names))


def _span(value: Any) -> str:
    if not isinstance(value, str):
        raise malformed("its span is not a text", "span")
    if value:
        _window(value)
    return value


def _window(span: str) -> tuple[datetime, datetime]:
    first, _, end = span.partition("..")
    start, stop = _moment(first), _moment(end)
    if start is None or stop is None or stop - start <= timedelta():
        raise malformed("its span is not like 2026-01-05T03..2026-01-06, in UTC, the end not included", "span")
    return start, stop


def _moment(text: str) -> datetime | None:
    return start_of_key(text, Grain.DAY) or start_of_key(text, Grain.HOUR)
