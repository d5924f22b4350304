"""Alerts and messages: what is sent, as data, as text and as JSON.

The texts come from file names, error messages and rows, so a producer can choose them. They are made harmless when an
alert is created: one line each, without control or formatting characters, so no text can forge a header, a log line or
a terminal sequence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blogdata.errors import shown
from blogdata.errors.severity import Severity

SHOWN = 30
"""Alerts of each state that a message's text lists; its JSON has all of them."""
_DIGEST = 12
_LONGEST = {"identity": 300, "owner": 100, "title": 150, "text": 1000, "next_step": 1000}


@dataclass(frozen=True, kw_only=True)
class Alert:
    """Something that a person should know now; its texts are plain single lines.

    Args:
        identity: What stays the same while it stands, even if its texts change.
        severity: How urgent it is.
        owner: Who is responsible, as `team:name`.
        title: What it is about, in a few words.
        text: What holds, in a sentence.
        next_step: What to do about it.
    """

    identity: str
    severity: Severity
    owner: str
    title: str
    text: str
    next_step: str

    def __post_init__(self) -> None:
        named = shown.message(self.identity, _LONGEST["identity"])
        if named != self.identity:
            # Two identities stay two, even where the same is left of both.
            named = f"{shown.message(named, _LONGEST['identity'] - _DIGEST - 1)} {digest([self.identity])[:_DIGEST]}"
        object.__setattr__(self, "identity", named)
        for name, longest in _LONGEST.items():
            object.__setattr__(self, name, shown.message(getattr(self, name), longest))

    def as_json(self) -> dict[str, Any]:
        """Return the alert as JSON-compatible values."""
        return {**vars(self), "severity": self.severity.value}


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is sent at once: everything that changed for one channel and owner.

    Args:
        identity: The same for the same content, so that a receiver can recognize a message that is sent again.
        deployment: Name of the deployment; empty: it has none.
        begun: Alerts that are new, or more urgent than when they were last sent.
        standing: Alerts that were sent before, and still hold.
        ended: Alerts that were sent before, and no longer hold.
    """

    identity: str
    deployment: str = ""
    begun: Sequence[Alert] = ()
    standing: Sequence[Alert] = ()
    ended: Sequence[Alert] = ()

    @property
    def states(self) -> dict[str, Sequence[Alert]]:
        """The alerts by state, as messages name the states."""
        return {"new": self.begun, "still standing": self.standing, "resolved": self.ended}

    @property
    def severity(self) -> Severity | None:
        """The highest severity of the alerts that hold; None if all are resolved."""
        held = {alert.severity for alert in (*self.begun, *self.standing)}
        return next((severity for severity in reversed(Severity) if severity in held), None)

    @property
    def subject(self) -> str:
        """One line about the whole message."""
        level = f"[{self.severity.value if self.severity else 'resolved'}]"
        found = [(state, alert) for state, alerts in self.states.items() for alert in alerts]
        if len(found) == 1:
            state, alert = found[0]
            about = alert.title if state != "still standing" else f"{alert.title}, {state}"
        else:
            about = ", ".join(f"{len(alerts)} {state}" for state, alerts in self.states.items() if alerts)
            owners = sorted({alert.owner for _, alert in found})
            about += f" ({', '.join(owners)})"
        return shown.message(" ".join(filter(None, [self.deployment, level, about])), 200)

    @property
    def text(self) -> str:
        """The whole message as plain text."""
        lines: list[str] = []
        for state, alerts in self.states.items():
            for alert in alerts[:SHOWN]:
                lines += [f"{state.upper()} [{alert.severity.value}] {alert.title}", f"  {alert.text}"]
                if state != "resolved":
                    lines += [f"  next:  {alert.next_step}", f"  owner: {alert.owner}"]
                lines.append("")
            if len(alerts) > SHOWN:
                lines += [f"and {len(alerts) - SHOWN:,} more {state}", ""]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the message as JSON-compatible values, every alert with its state."""
        return {
            "id": self.identity,
            "deployment": self.deployment,
            "severity": self.severity.value if self.severity else None,
            "subject": self.subject,
            "text": self.text,
            "alerts": [
                {"state": state, **alert.as_json()} for state, alerts in self.states.items() for alert in alerts
            ],
        }


def digest(parts: Sequence[str]) -> str:
    """Return a short identity of some texts."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]
