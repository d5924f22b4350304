"""The channel `log`: messages in the log of the process that sends them."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from blogdata.alerts.alert import SHOWN, Message
from blogdata.errors.severity import Severity

_LOG = logging.getLogger("alerts")


@dataclass(frozen=True, kw_only=True)
class Log:
    """Writes a line per alert into Python's log `alerts`."""

    def send(self, message: Message, seconds: float) -> None:
        """Log the alerts; critical ones as errors."""
        for state, alerts in message.states.items():
            for alert in alerts[:SHOWN]:
                urgent = alert.severity is Severity.CRITICAL and state != "resolved"
                step = "" if state == "resolved" else f"; {alert.next_step}"
                line = f"{state}: {alert.title}: {alert.text} ({alert.owner}{step})"
                _LOG.log(logging.ERROR if urgent else logging.WARNING, "%s", line)
            if len(alerts) > SHOWN:
                _LOG.warning("and %d more %s", len(alerts) - SHOWN, state)

    def check(self, seconds: float) -> None:
        """Do nothing: a log can always be used."""
