"""Sends what is due: by severity and owner to channels, grouped, each channel on its own.

Every channel has its own thread and time limit, so one that hangs or fails delays no other. What a channel has not
taken stays due. A channel that keeps failing is tried again after growing pauses, so that a wrong password locks no
account.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from blogdata.alerts.alert import Alert, Message, digest
from blogdata.alerts.channel import Channel, ChannelFailed
from blogdata.alerts.record import AlertRecord, Failure
from blogdata.alerts.standing import Told, due, ended, sent
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, TryAlerts
from blogdata.errors.severity import Severity

Group = Literal["owner", "channel", "none"]
_FIRST_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Route:
    """A channel, and which alerts it gets.

    Args:
        name: Name of the channel.
        channel: The channel, or the error why it cannot be used.
        least: Least severity of its alerts.
        owners: Owners whose alerts it gets; empty: all.
        seconds: Time limit for all messages of one round.
        secrets: Texts that no message about the channel may contain.
    """

    name: str
    channel: Channel | PlatformError
    least: Severity = Severity.WARNING
    owners: tuple[str, ...] = ()
    seconds: float = 20.0
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def takes(self, alert: Alert) -> bool:
        """Return whether the channel gets an alert."""
        return alert.severity.is_at_least(self.least) and (not self.owners or alert.owner in self.owners)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How often and how grouped alerts are sent.

    Args:
        repeat_after: Pause before an alert that stands is sent again, in seconds.
        group: What one message has: everything for an `owner`, everything for a `channel`, or one alert (`none`).
        deployment: Name of the deployment, shown in every message.
    """

    repeat_after: float = 86_400.0
    group: Group = "owner"
    deployment: str = ""


@dataclass(frozen=True, kw_only=True)
class Round:
    """What became of the messages that were due.

    Args:
        sent: Number of messages that channels have taken.
        failures: The channels that were tried and failed.
        paused: The channels that have failed before and are not tried again yet.
    """

    sent: int
    failures: tuple[Failure, ...]
    paused: tuple[Failure, ...]


class AlertsNotSent(PlatformError):
    """Channels have not taken alerts; these stay due."""

    transient = True

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__(
            what="; ".join(f"channel {one.channel}: {one.error.what}" for one in failures),
            where=", ".join(one.error.where for one in failures),
            next_step=Remedy(
                f"{'; '.join(dict.fromkeys(one.error.next_step for one in failures))}; then try it: ", TryAlerts()
            ),
        )


def send(
    alerts: Sequence[Alert], *, routes: Sequence[Route], policy: Policy, record: AlertRecord, now: float | None = None
) -> Round:
    """Send what is due to every channel; only one process may do so at a time.

    Args:
        alerts: Everything that holds now.
        routes: The channels.
        policy: How often and how grouped.
        record: What was sent before.
        now: Current time, in seconds since 1970; None reads the clock.

    Raises:
        RecordUnusable: The record cannot be read or written.
    """
    moment = time.time() if now is None else now
    unique: dict[str, Alert] = {}
    # The most urgent ones come first; of several with one identity the most urgent one counts.
    for alert in sorted(alerts, key=lambda one: list(Severity).index(one.severity), reverse=True):
        unique.setdefault(alert.identity, alert)
    record.forget_others(route.name for route in routes)
    failing = record.failures()
    paused: list[Failure] = []
    started: list[tuple[Route, Future[int]]] = []
    for route in routes:
        known = record.known(route.name)
        found = due(
            known,
            [alert for alert in unique.values() if route.takes(alert)],
            now=moment,
            repeat_after=policy.repeat_after,
        )
        if found.known != known:
            record.keep(route.name, found.known)
        parcels = _parcels(route.name, found.begun, found.standing, found.ended, policy, moment)
        if not parcels:
            continue
        if route.name in failing and moment - failing[route.name].at < pause_seconds(failing[route.name].tries):
            paused.append(failing[route.name])
            continue
        started.append((route, _in_thread(_deliver, route, parcels, record, moment)))
    taken, failures = 0, []
    for route, future in started:
        try:
            taken += future.result(timeout=route.seconds + _GRACE_SECONDS)
        except futures.TimeoutError:
            error = _too_slow(route)
        except ChannelFailed as failure:
            error = failure
        else:
            continue
        record.failed(route.name, error, moment)
        failures.append(record.failures()[route.name])
    return Round(sent=taken, failures=tuple(failures), paused=tuple(paused))


def try_out(route: Route, policy: Policy, record: AlertRecord) -> ChannelFailed | None:
    """Send a test message to a channel, whatever is due; a channel that takes it is no longer paused.

    Returns:
        Why the channel did not take it; None if it did.
    """
    now = time.time()
    test = Alert(
        identity="test",
        severity=route.least,
        owner=route.owners[0] if route.owners else "team:everybody",
        title="test message",
        text=f"this is a test of the channel {route.name}; alerts reach you",
        next_step="nothing",
    )
    message = Message(identity=digest([route.name, str(now)]), deployment=policy.deployment, begun=(test,))
    future = _in_thread(_deliver, route, [_Parcel(message=message, told=())], record, now)
    try:
        future.result(timeout=route.seconds + _GRACE_SECONDS)
    except futures.TimeoutError:
        return _too_slow(route)
    except ChannelFailed as failure:
        return failure
    return None


def pause_seconds(tries: int) -> float:
    """Return the pause before a channel that has failed so often is tried again, in seconds."""
    # A little less than full minutes, so that a round each minute is not missed by a second.
    return float(min(_FIRST_PAUSE_SECONDS * 2 ** min(tries - 1, 10), _LONGEST_PAUSE_SECONDS)) - 5


@dataclass(frozen=True, kw_only=True)
class _Parcel:
    """A message, and what the channel knows once it has taken it."""

    message: Message
    told: tuple[Told, ...]


def _parcels(
    channel: str,
    begun: Iterable[Told],
    standing: Iterable[Told],
    over: Iterable[Told],
    policy: Policy,
    now: float,
) -> list[_Parcel]:
    groups: dict[str, dict[str, list[Told]]] = {}
    for state, told in (("begun", begun), ("standing", standing), ("ended", over)):
        for one in told:
            key = {"owner": one.alert.owner, "channel": "", "none": one.alert.identity}[policy.group]
            groups.setdefault(key, {}).setdefault(state, []).append(one)
    return [
        _Parcel(
            message=Message(
                identity=digest([channel, key, *_moments(found)]),
                deployment=policy.deployment,
                **{state: tuple(one.alert for one in told) for state, told in found.items()},
            ),
            told=(
                *(sent(one, now) for state in ("begun", "standing") for one in found.get(state, ())),
                *(ended(one, now) for one in found.get("ended", ())),
            ),
        )
        for key, found in sorted(groups.items())
    ]


def _moments(found: Mapping[str, Sequence[Told]]) -> list[str]:
    """Return texts that are the same when the same message is sent again, and differ for its next repetition."""
    told = [(state, one) for state, those in found.items() for one in those]
    return sorted(f"{state} {one.alert.identity} {one.began} {one.sends}" for state, one in told)


def _deliver(route: Route, parcels: Sequence[_Parcel], record: AlertRecord, now: float) -> int:
    """Send messages until the time is over or the channel fails; return how many it took.

    Raises:
        ChannelFailed: It did not take one, or not for all receivers. What follows is tried only if it refused that
            message alone.
    """
    if isinstance(route.channel, PlatformError):
        error = route.channel
        raise ChannelFailed(what=error.what, where=error.where, next_step=error.next_step)
    deadline = time.monotonic() + route.seconds
    last: ChannelFailed | None = None
    for number, parcel in enumerate(parcels):
        left = deadline - time.monotonic()
        if left <= 0 and number:
            raise _too_slow(route)
        failure = _given(route, route.channel, parcel.message, left)
        last = failure or last
        if failure is None or failure.taken:
            record.taken(route.name, parcel.message, parcel.told, now)
        elif not failure.refused:
            break
    if last is not None:
        raise last from None
    return len(parcels)


def _given(route: Route, channel: Channel, message: Message, seconds: float) -> ChannelFailed | None:
    """Give a message to a channel; return its failure without secrets, and without the error that caused it."""
    try:
        channel.send(message, seconds)
    except ChannelFailed as failure:
        return failure.without(route.secrets)
    except Exception as error:  # noqa: BLE001 - any fault of a channel is its failure, and no other channel's
        return ChannelFailed(
            what=f"{type(error).__name__}: {error}",
            where=f"channel {route.name}",
            next_step="report it with this text; until then use another kind of channel",
        ).without(route.secrets)
    return None


def _too_slow(route: Route) -> ChannelFailed:
    return ChannelFailed(
        what=f"it did not take all messages within {route.seconds:g} s",
        where=f"channel {route.name}",
        next_step="check whether its server answers, or give it more seconds",
    )


def _in_thread(work: Callable[..., int], *arguments: object) -> Future[int]:
    """Start work in a thread that does not keep the process alive when it hangs."""
    future: Future[int] = Future()

    def run() -> None:
        try:
            future.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - raised where the result is read
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="alerts").start()
    return future
