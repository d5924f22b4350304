"""External Trigger: an event from outside starts a run, once, and waits until it can.

Problem: nobody can tell when the data will come. A schedule runs in vain most of the time, and late the rest of it.

How it works: a sender notifies the platform. :meth:`Trigger.take` is the entrance for every channel: an HTTP call with
a token, or a file in the landing zone (:mod:`.notification_files`). It authenticates the sender, parses the event and
keeps it in the inbox, and only then is the sender answered. A sensor turns what waits into requests of runs. The
event's context (:func:`context`) goes with the run, into its tags and its commits.

An event is identified by its source and id. Delivered again it is the same entry, and the same run key.
A run that does not come about is requested again after growing pauses (:func:`pause`), and after :data:`MOST_TRIES`
requests the event is kept for a person. A refused notification is kept too, with its reason.

The trap: a trigger that is only a ping. Without its event nobody knows why a run took place, and an event that was
answered and then lost in memory is never sent again. A second trap is trust: an event selects declared datasets and a
span, and nothing in it is opened or executed.

When not to use it: for data that come regularly, or from a producer that cannot notify; then a Readiness Marker.

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from blogdata.errors import ConfigurationError, PlatformError, refuse_unknown
from blogdata.errors.remedies import Remedy, ShowEvents
from blogdata.patterns.ingestion.event_inbox import REFUSED, Inbox, InboxEntry, Refusal
from blogdata.patterns.ingestion.trigger_event import (
    MOST_BYTES,
    EventRefused,
    Forged,
    NotPermitted,
    SpanTooLong,
    TooLarge,
    TriggerEvent,
    Undeclared,
    WrongTime,
    parse,
)

HTTP = "http"
FILE = "file"
AHEAD = timedelta(minutes=5)
"""How far the clock of a sender may be ahead."""
MOST_TRIES = 8
"""Requests for the run of one event, before it is kept for a person."""
_PAUSE_SECONDS = 30.0
_DOUBLED_AT_MOST = 6


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Somebody who may start runs.

    Args:
        name: Its name, the `source` of its events.
        datasets: Datasets that it may request; empty: all. If it is limited, its events must name datasets.
        channels: Channels that it may use without a token.
    """

    name: str
    datasets: tuple[str, ...] = ()
    channels: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Notification:
    """A message as it arrived through any channel.

    Args:
        body: Its bytes; empty if it is too large to be read.
        size: Its length in bytes.
        channel: The channel, such as `http`.
        origin: Address or file it arrived from.
        at: When it arrived, timezone-aware.
        token: Its token; None if it has none.
    """

    body: bytes
    size: int
    channel: str
    origin: str
    at: datetime
    token: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """The entrance for events.

    Args:
        senders: The senders, by name.
        tokens: Reads the tokens, by the name of the sender; called for each notification, so a token can be replaced.
        datasets: The declared datasets.
        inbox: Where accepted events wait.
        oldest: How old an event may be when it arrives.
        longest: How long a span an event may request.
        version: Version of the platform, recorded with each event.
    """

    senders: Mapping[str, Sender]
    tokens: Callable[[], Mapping[str, str]]
    datasets: Collection[str]
    inbox: Inbox
    oldest: timedelta
    longest: timedelta
    version: str

    def take(self, notification: Notification) -> tuple[InboxEntry, bool]:
        """Accept an event: when this returns, it is on the disk.

        Args:
            notification: The message.

        Returns:
            The entry in the inbox, and whether the event was known before.

        Raises:
            EventRefused: The event starts no run; the refusal is in the inbox.
            InboxUnusable: The event could not be kept; transient.
            ConfigurationError: A token cannot be read.
        """
        sender = None
        try:
            if notification.channel == HTTP:
                sender = authenticated(notification.token, self.tokens())
            if notification.size > MOST_BYTES:
                raise TooLarge(
                    what=f"the event has {notification.size} bytes, and {MOST_BYTES} are the limit",
                    where="the event",
                    next_step="put the data elsewhere, and refer to them by `payload`",
                )
            event = parse(notification.body)
            self._permit(event, sender, notification.channel)
            self._require_declared(event)
            # A sender that got no answer for long repeats an event that has become old meanwhile.
            if self.inbox.find(event) is None:
                self._require_recent(event, notification.at)
            return self.inbox.put(self._entry(event, notification.channel, notification.origin, notification.at))
        except EventRefused as error:
            readable = not isinstance(error, Forged | TooLarge)
            self.inbox.refuse(
                Refusal(
                    at=notification.at.timestamp(),
                    channel=notification.channel,
                    origin=notification.origin,
                    sender=sender,
                    kind=error.kind,
                    what=error.what,
                    body=notification.body if readable else None,
                )
            )
            raise

    def is_known(self, token: str | None) -> bool:
        """Return whether a token is that of a sender.

        Raises:
            ConfigurationError: A token cannot be read.
        """
        try:
            authenticated(token, self.tokens())
        except Forged:
            return False
        return True

    def retry(self, name: str, now: datetime) -> InboxEntry:
        """Have an event wait again: a failed or started one, or a refused notification, whatever its age.

        Args:
            name: The event's `source/id` or id, or the name of a refused notification.
            now: Current time, timezone-aware.

        Raises:
            ConfigurationError: There is no such event.
            EventRefused: It was refused for a reason that still holds.
        """
        if not name.startswith(REFUSED):
            entry = self.inbox.retry(name)
            if entry is None:
                raise _no_such_event(name)
            return entry
        for refusal in self.inbox.refusals(-1):
            if refusal.name == name:
                return self._forgiven(refusal, now)
        raise _no_such_event(name)

    def undeclared(self, event: TriggerEvent) -> PlatformError | None:
        """Return why an accepted event can no longer run: a dataset is not declared any more; None if it can."""
        try:
            self._require_declared(event)
        except Undeclared as error:
            return error
        return None

    def _forgiven(self, refusal: Refusal, now: datetime) -> InboxEntry:
        if refusal.body is None:
            raise Forged(
                what="nothing was kept of what arrived",
                where=refusal.name,
                next_step="have the sender send it again, with its token and within the size limit",
            )
        event = parse(refusal.body)
        self._permit(event, refusal.sender, refusal.channel)
        self._require_declared(event)
        entry, _ = self.inbox.put(self._entry(event, refusal.channel, refusal.origin, now))
        self.inbox.forgive(refusal)
        return entry

    def _entry(self, event: TriggerEvent, channel: str, origin: str, at: datetime) -> InboxEntry:
        return InboxEntry(event=event, channel=channel, origin=origin, version=self.version, received=at.timestamp())

    def _permit(self, event: TriggerEvent, sender: str | None, channel: str) -> None:
        known = self.senders.get(event.source)
        if known is None or (sender != known.name if sender is not None else channel not in known.channels):
            raise NotPermitted(
                what=f"events of {event.source} do not come this way",
                where="source",
                next_step="send it under the name of the sender, by the channel that the settings declare for it",
            )
        beyond = sorted({*event.datasets} - {*known.datasets})
        if known.datasets and (beyond or not event.datasets):
            raise NotPermitted(
                what=f"{known.name} may not request {', '.join(beyond) or 'all datasets'}",
                where="datasets",
                next_step=f"request only: {', '.join(known.datasets)}",
            )
        if event.window is not None and event.window[1] - event.window[0] > self.longest:
            raise SpanTooLong(
                what=f"the span {event.span} is longer than {self.longest.total_seconds() / 86_400:g} days",
                where="span",
                next_step="request shorter spans, each by an event of its own; or have the owner set a longer max_span",
            )

    def _require_declared(self, event: TriggerEvent) -> None:
        try:
            refuse_unknown(event.datasets, self.datasets, where="datasets")
        except ConfigurationError as error:
            raise Undeclared(what=error.what, where=error.where, next_step=error.remedy) from error

    def _require_recent(self, event: TriggerEvent, at: datetime) -> None:
        # Differences: a sum at the first or the last year of the calendar overflows.
        if event.time - at > AHEAD:
            problem = f"lies in the future: it is {at.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ} here"
        elif at - event.time > self.oldest:
            problem = f"is more than {self.oldest} ago: it may be a replayed event"
        else:
            return
        raise WrongTime(
            what=f"the event's time {event.time:%Y-%m-%dT%H:%M:%SZ} {problem}",
            where="time",
            next_step="correct the sender's clock; or accept what was refused by retrying it here",
        )


def authenticated(token: str | None, tokens: Mapping[str, str]) -> str:
    """Find the sender that a token belongs to; the time this takes does not depend on the token's content.

    Args:
        token: The token that was sent; None if there was none.
        tokens: The tokens, by the name of the sender.

    Raises:
        Forged: It is nobody's.
    """
    # Digests of equal length: the comparison does not reveal the length of a token either.
    given = hashlib.sha256((token or "").encode()).digest()
    matches = [
        name for name, own in tokens.items() if hmac.compare_digest(hashlib.sha256(own.encode()).digest(), given)
    ]
    if token is None or len(matches) != 1:
        raise Forged(
            what="the event has no token" if token is None else "the token belongs to no sender",
            where="the header Authorization",
            next_step="send the header: Authorization: Bearer TOKEN",
        )
    return matches[0]


def context(entry: InboxEntry) -> dict[str, str]:
    """Return what a run should know about the event that started it: its envelope, and when and how it arrived."""
    event = entry.event
    received = datetime.fromtimestamp(entry.received, timezone.utc)
    return {
        "id": event.id,
        "source": event.source,
        "time": event.time.isoformat(),
        "received": received.isoformat(timespec="milliseconds"),
        "channel": entry.channel,
        "origin": entry.origin,
        "version": entry.version,
        "digest": event.digest,
        **({"payload": event.payload} if event.payload else {}),
        **({"run_number": str(entry.run_number)} if entry.run_number > 1 else {}),
    }


def pause(tries: int) -> float:
    """Return the pause after so many requests for the run of an event, in seconds."""
    return _PAUSE_SECONDS * float(2 ** min(tries - 1, _DOUBLED_AT_MOST))


def _no_such_event(name: str) -> ConfigurationError:
    return ConfigurationError(
        what=f"there is no event {name}", where="the inbox", next_step=Remedy("choose one of: ", ShowEvents())
    )
