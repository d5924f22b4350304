"""When somebody is told about an alert: at its begin, again after a pause while it stands, and once at its end.

An alert that comes and goes must not flood anybody. The first end is reported at once. If the alert comes back within a
day, it must then be absent for ten minutes before its end counts, and for twice as long each further time, up to the
pause of repetitions. An alert that flaps faster than that is one that stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from blogdata.alerts.alert import Alert
from blogdata.errors.severity import Severity

SETTLE_SECONDS = 600.0
CALM_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one channel knows about an alert; times in seconds since 1970.

    Args:
        alert: The alert as it was last seen.
        began: When it was first seen.
        sent: When it was last sent; None: not yet.
        sent_severity: Its severity when it was last sent.
        sends: How often it was sent since it began.
        absent: Since when it no longer holds; None: it holds.
        ended: When its end was sent; None: it was not.
        returns: How often it came back soon after its end.
    """

    alert: Alert
    began: float
    sent: float | None = None
    sent_severity: Severity | None = None
    sends: int = 0
    absent: float | None = None
    ended: float | None = None
    returns: int = 0


@dataclass(frozen=True, kw_only=True)
class Due:
    """What a channel has to be told now.

    Args:
        known: What is kept about each alert, by identity, if nothing of it is sent.
        begun: Alerts that are new, or more urgent than when they were last sent.
        standing: Alerts whose repetition is due.
        ended: Alerts whose end is due.
    """

    known: Mapping[str, Told]
    begun: tuple[Told, ...]
    standing: tuple[Told, ...]
    ended: tuple[Told, ...]


def due(known: Mapping[str, Told], alerts: Iterable[Alert], *, now: float, repeat_after: float) -> Due:
    """Compare what a channel knows with what holds.

    Args:
        known: What the channel knows, by identity.
        alerts: What holds now and concerns the channel.
        now: Current time, in seconds since 1970.
        repeat_after: Pause before an alert that stands is sent again, in seconds.
    """
    kept: dict[str, Told] = {}
    begun, standing, ended = list[Told](), list[Told](), list[Told]()
    for alert in alerts:
        told = _seen(known.get(alert.identity), alert, now)
        kept[alert.identity] = told
        if told.sent is None or told.sent_severity is None or not told.sent_severity.is_at_least(alert.severity):
            begun.append(told)
        elif _is_over(told.sent, repeat_after, now):
            standing.append(told)
    for identity, told in known.items():
        # Nobody was told of an alert that was never sent, so nobody needs to be told of its end.
        if identity in kept or told.sent is None:
            continue
        if told.ended is not None:
            if not _is_over(told.ended, CALM_SECONDS, now):
                kept[identity] = told
            continue
        gone = told if told.absent is not None else replace(told, absent=now)
        kept[identity] = gone
        if _is_over(gone.absent or now, _settle_seconds(gone.returns, repeat_after), now):
            ended.append(gone)
    return Due(known=kept, begun=tuple(begun), standing=tuple(standing), ended=tuple(ended))


def sent(told: Told, now: float) -> Told:
    """Return what a channel knows once it was told of an alert that holds."""
    return replace(told, sent=now, sent_severity=told.alert.severity, sends=told.sends + 1)


def ended(told: Told, now: float) -> Told:
    """Return what a channel knows once it was told of an alert's end."""
    return replace(told, ended=now)


def _seen(told: Told | None, alert: Alert, now: float) -> Told:
    if told is None:
        return Told(alert=alert, began=now)
    if told.ended is not None:
        soon = not _is_over(told.ended, CALM_SECONDS, now)
        return Told(alert=alert, began=now, returns=told.returns + 1 if soon else 0)
    return replace(told, alert=alert, absent=None)


def _settle_seconds(returns: int, repeat_after: float) -> float:
    # The exponent is limited, because a float is.
    return min(SETTLE_SECONDS * 2.0 ** min(returns - 1, 20), repeat_after) if returns else 0.0


def _is_over(since: float, pause: float, now: float) -> bool:
    """Return whether a pause is over; also if the clock was set back, which would otherwise prolong it."""
    return not 0 <= now - since < pause
