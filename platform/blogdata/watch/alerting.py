"""Sends findings to people's channels: once, and again after a pause while they stand.

What was sent is recorded after the channel took it, so a process that dies between the two sends it again. A producer
can choose the texts, which come from file names, errors and rows: each becomes one plain line.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from blogdata.errors import PlatformError, shown
from blogdata.errors.finding import Finding, Severity
from blogdata.files import locked, write_atomically
from blogdata.operate import secrets
from blogdata.operate.config import ChannelSettings, Settings
from blogdata.operate.setting_types import SECRET
from blogdata.watch import findings

if TYPE_CHECKING:
    from apprise import Apprise

_LEAST_SECRET = 6
_COMES_BACK = 1800.0
"""Seconds after which a finding that was over is told once more if it stands again."""


class AlertsNotSent(PlatformError):
    """Channels have not taken their messages, which stay due."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Told:
    """How severe a finding was when a channel was told of it, and when, in seconds since 1970."""

    severity: Severity
    sent: float


@dataclass(frozen=True, kw_only=True)
class Record:
    """What each channel was told, by the identity of the finding."""

    told: dict[str, dict[str, Told]] = field(default_factory=dict)


def due(
    earlier: Mapping[str, Told], standing: Iterable[Finding], *, now: float, repeat_after: float
) -> tuple[list[Finding], dict[str, Told]]:
    """Return the findings to send to a channel, and its new record; times in seconds since 1970.

    A finding is sent again if it is more severe, after the pause, or if it comes back half an hour after it was sent.
    """
    standing, sent = list(standing), []
    stands = {shown.line(finding.identity) for finding in standing}
    # If the clock was set back, the pause would otherwise be longer.
    known = {
        identity: before
        for identity, before in earlier.items()
        if 0 <= now - before.sent < (repeat_after if identity in stands else min(_COMES_BACK, repeat_after))
    }
    for finding in standing:
        identity = shown.line(finding.identity)
        before = known.get(identity)
        if before is None or not before.severity.is_at_least(finding.severity):
            sent.append(finding)
            known[identity] = Told(severity=finding.severity, sent=now)
    return sent, known


def _title(findings: Sequence[Finding], deployment: str) -> str:
    more = f" and {len(findings) - 1} more" if findings[1:] else ""
    return shown.message(f"{deployment} [{findings[0].severity.value}] {findings[0].title}{more}", 200)


def _text(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings:
        title, what = shown.message(finding.title, 150), shown.message(finding.what, 1000)
        lines.append(f"[{finding.severity.value}] {title}: {what}")
        lines += [f"  next:  {shown.message(str(finding.remedy), 1000)}", f"  owner: {finding.owner}"]
    return "\n".join(lines)


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


def tell(settings: Settings, *, lock_seconds: float = 120.0) -> int:
    """Send what is due of everything that stands now; return the number of messages.

    Raises:
        AlertsNotSent: Channels failed; the others have got theirs.
        LockTimeout: Another process was sending all that time; transient.
    """
    with locked(settings.service_folder("alerts") / "lock", seconds=lock_seconds):
        standing = findings.standing(findings.observed(settings))
        record, sent, failures = record_of(settings), 0, list[PlatformError]()
        for channel in settings.alerts:
            earlier, after = record.told.get(channel.name, {}), settings.alerting.repeat_after
            chosen = [
                finding
                for finding in standing
                if finding.severity.is_at_least(channel.least_severity)
                and finding.owner in (channel.owners or [finding.owner])
            ]
            new, known = due(earlier, chosen, now=time.time(), repeat_after=after)
            if not new and known == earlier:
                continue
            try:
                if new:
                    send(settings, channel, new)
                    sent += 1
            except PlatformError as error:
                failures.append(error)
                continue
            record.told[channel.name] = known
            # After each channel: a process that dies then tells the earlier ones nothing twice.
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


def send(settings: Settings, channel: ChannelSettings, findings: Sequence[Finding]) -> None:
    """Send one message of all findings, the most severe one first; it returns when the channel has taken it."""
    from apprise import LogCapture, NotifyFormat, NotifyType

    kind = {Severity.WARNING: NotifyType.WARNING, Severity.CRITICAL: NotifyType.FAILURE}
    secret = _secret(settings, channel)
    service = _opened(channel, secret)
    with LogCapture(level=logging.WARNING, fmt="%(message)s") as log:  # type: ignore[no-untyped-call]
        taken = service.notify(
            title=_without_mentions(_title(findings, settings.alerting.name)),
            body=_without_mentions(_text(findings)),
            notify_type=kind[findings[0].severity],
            # Without it, services that render HTML or Markdown would render what a producer has written.
            body_format=NotifyFormat.TEXT,
        )
    if not taken:
        raise _failed(channel, _hidden(secret, log.getvalue()) or "it did not take the message")


def check(settings: Settings, channel: ChannelSettings) -> None:
    """Check that a channel's secret can be read and that Apprise knows its address, without sending anything."""
    _opened(channel, _secret(settings, channel))


def _secret(settings: Settings, channel: ChannelSettings) -> str:
    return "" if channel.secret is None else secrets.given(settings, channel.secret).reveal()


def _opened(channel: ChannelSettings, secret: str) -> Apprise:
    from apprise import Apprise, AppriseAsset, NotifyBase, OverflowMode

    # An address in a log may hold a secret.
    logging.getLogger("apprise").propagate = False
    address = secret if channel.address == SECRET else channel.address.replace(SECRET, quote(secret, safe=""))
    # A redirect would turn a POST into a GET, and lose the message.
    service = Apprise.instantiate(address, asset=AppriseAsset(http_redirects=False))
    if not isinstance(service, NotifyBase):
        raise _failed(channel, "that is not an address that Apprise knows")
    if service.overflow_mode is OverflowMode.UPSTREAM:
        # A service refuses a longer text than it takes, at every try; what is cut off would count as told.
        service.overflow_mode = OverflowMode.SPLIT
    opened = Apprise()
    opened.add(service)
    return opened


def _failed(channel: ChannelSettings, what: str) -> PlatformError:
    return PlatformError(
        what=shown.message(f"channel {channel.name}: {what}", 500),
        where=f"[[alerts]] {channel.name} in blogdata.toml",
        next_step="check its address and its secret, as Apprise's documentation describes them",
    )


def _hidden(secret: str, text: str) -> str:
    """Return a text with a secret and its parts replaced; a server may repeat them in its answer."""
    parts = {secret, quote(secret, safe=""), *re.split(r"[/@:?&=]", secret)}
    # A shorter part of an address is no secret, and is part of ordinary words.
    for part in sorted((part for part in parts if len(part) >= _LEAST_SECRET), key=len, reverse=True):
        text = text.replace(part, "***")
    return text.strip()


def _without_mentions(text: str) -> str:
    """Return a text that notifies nobody by a mention: a producer may have written it into a file's name."""
    return re.sub(r"<(?=[@!#])|@(?=(?:everyone|here|channel|all)\b)", r"\g<0> ", text)
