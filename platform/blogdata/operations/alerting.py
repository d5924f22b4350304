"""Tells people what stands: once, again after a while, and once when it is over.

What a channel was told is noted after the channel took it, so that a process that dies between the two sends it again.
The texts come from file names, errors and rows, so a producer can choose them: here each becomes one plain line.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import PlatformError, shown
from blogdata.errors.finding import Finding, Severity
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration import partner
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning import clock, findings
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.services import alert_channels
from blogdata.services.config import Settings
from blogdata.services.files import locked
from quality.contracts import GRAPH
from quality.contracts.serving import PARTNER_FEED
from quality.contracts.streams import streamed_inputs

_CALM_SECONDS = 1800.0
"""What comes back so soon after its end is sent after this time, so that nothing that comes and goes floods anybody."""


class AlertsNotSent(PlatformError):
    """Channels have not taken their messages, which stay due."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a channel was told of a finding, when, and when its end was sent (None: it stands); Unix times."""

    title: str
    severity: Severity
    sent: float
    over: float | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """What each channel was told, by the identity of the finding, and why channels fail."""

    told: dict[str, dict[str, Told]] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Due:
    standing: Sequence[Finding]
    over: Sequence[Told]
    told: dict[str, Told]

    @property
    def severity(self) -> Severity | None:
        """The highest severity of what stands; None: all is over."""
        return self.standing[0].severity if self.standing else None

    def title(self, deployment: str) -> str:
        first, *others = [one.title for one in self.standing] + [one.title for one in self.over]
        more = f" and {len(others)} more" if others else ""
        level = self.severity.value if self.severity else "over"
        return shown.message(f"{deployment} [{level}] {first}{more}", 200)

    @property
    def text(self) -> str:
        """The message's body; a service cuts what is too long for it."""
        lines = []
        for one in self.standing:
            lines.append(f"[{one.severity.value}] {shown.message(one.title, 150)}: {shown.message(one.what, 1000)}")
            lines += [f"  next:  {shown.message(str(one.remedy), 1000)}", f"  owner: {one.owner}"]
        return "\n".join([*lines, *(f"[over] {one.title}" for one in self.over)])


def due(told: Mapping[str, Told], findings: Iterable[Finding], *, now: float, repeat_after: float) -> Due:
    """Compare what a channel was told with what stands; times in seconds since 1970, the pause in seconds."""
    sent, kept = list[Finding](), dict[str, Told]()
    for finding in findings:
        identity = shown.line(finding.identity)
        before = told.get(identity)
        if identity in kept:
            continue
        if before and before.severity.is_at_least(finding.severity) and not _passed(before, repeat_after, now):
            kept[identity] = before
        else:
            sent.append(finding)
            kept[identity] = Told(title=shown.message(finding.title, 150), severity=finding.severity, sent=now)
    gone = {identity: before for identity, before in told.items() if identity not in kept}
    for identity, before in gone.items():
        if before.over is None:
            kept[identity] = replace(before, over=now)
        elif not _passed(before, repeat_after, now):
            kept[identity] = before
    return Due(standing=sent, over=[one for one in gone.values() if one.over is None], told=kept)


def _passed(told: Told, repeat_after: float, now: float) -> bool:
    """Return whether it may be sent again; also if the clock was set back, which would otherwise prolong the pause."""
    since, pause = (told.sent, repeat_after) if told.over is None else (told.over, _CALM_SECONDS)
    return not 0 <= now - since < pause


def record_of(settings: Settings) -> Record:
    file = _file(settings)
    try:
        return TypeAdapter(Record).validate_json(file.read_bytes()) if file.exists() else Record()
    except (OSError, ValidationError) as error:
        raise PlatformError(
            what="the record of alerts cannot be read",
            where=str(file),
            next_step="move it away: what stands is then sent once more",
        ) from error


def observed(settings: Settings) -> Observed:
    """Take a snapshot of a deployment, from which findings are drawn."""
    zone = LandingZone(folder=settings.landing, convention=settings.ready)
    return Observed(
        graph=GRAPH,
        look=Snapshot(zone, EventLog(Lake(root=str(settings.lake)))),
        now=clock.now(),
        streams=streamed_inputs(settings.checkpoints),
        feeds=[(PARTNER_FEED, partner.outbox(settings))],
    )


def tell(settings: Settings, *, lock_seconds: float = 120.0) -> int:
    """Send what is due of everything that stands now; return the number of messages.

    Raises:
        AlertsNotSent: Channels failed; the others have got theirs.
        LockTimeout: Another process was sending all that time; transient.
    """
    with locked(settings.service_folder("alerts") / "lock", seconds=lock_seconds):
        # Examined under the lock: an older view than that of the last sender would end what has just begun.
        standing = findings.standing(observed(settings))
        record, sent, failures = record_of(settings), 0, list[PlatformError]()
        for channel in settings.alerts:
            told, after = record.told.get(channel.name, {}), settings.alerting.repeat_after
            those = [
                one
                for one in standing
                if one.severity.is_at_least(channel.least_severity) and one.owner in (channel.owners or [one.owner])
            ]
            found = due(told, those, now=time.time(), repeat_after=after)
            if not (found.standing or found.over):
                continue
            title, severity = found.title(settings.alerting.name), found.severity
            try:
                alert_channels.send(settings, channel, title=title, text=found.text, severity=severity)
            except PlatformError as error:
                failures.append(error)
                record.failing[channel.name] = error.what
            else:
                sent += 1
                record.told[channel.name] = found.told
                record.failing.pop(channel.name, None)
            write_atomically(_file(settings), TypeAdapter(Record).dump_json(record, indent=1))
    if failures:
        raise AlertsNotSent(
            what="; ".join(error.what for error in failures),
            where=", ".join(error.where for error in failures),
            next_step="; ".join(dict.fromkeys(error.next_step for error in failures)),
        )
    return sent


def _file(settings: Settings) -> Path:
    return settings.home / "alerts.json"
