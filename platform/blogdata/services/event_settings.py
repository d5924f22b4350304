"""Reads the settings of the events that start runs: the section `[events]` and its tables `[[events.senders]]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blogdata.errors import ConfigurationError
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

KEYS = {"host", "port", "max_age", "max_span", "senders"}
SENDER_KEYS = {"name", "secret", "files", "datasets"}
HOST = "127.0.0.1"
PORT = 3070

_SECONDS_OF_A_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class SenderSettings:
    """Somebody who may start runs.

    Args:
        name: The `source` of its events.
        secret: File name of its token under `<home>/secrets`; None: it makes no HTTP calls.
        files: Whether it may write notification files into the landing zone.
        datasets: Datasets that it may request; empty: all.
    """

    name: str
    secret: str | None = None
    files: bool = False
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EventSettings:
    """Events that start runs.

    Args:
        host: Address the receiver listens at.
        port: Its port.
        max_age: How old an event may be when it arrives, in seconds.
        max_span: How long a span an event may request, in seconds.
        senders: Who may send some.
    """

    host: str = HOST
    port: int = PORT
    max_age: float = _SECONDS_OF_A_DAY
    max_span: float = 31 * _SECONDS_OF_A_DAY
    senders: tuple[SenderSettings, ...] = ()

    @property
    def received(self) -> bool:
        """Whether a sender makes HTTP calls, so that the receiver has to run."""
        return any(sender.secret is not None for sender in self.senders)


def parse(values: Values, *, file: Path) -> EventSettings:
    """Read the settings.

    Args:
        values: The section `[events]`.
        file: The settings file, for messages.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    tables, where = values.get("senders", ([], f"{file}, events.senders"))
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise ConfigurationError(
            what="senders of events are tables of their own",
            where=where,
            next_step="write each one under a line [[events.senders]], with two brackets",
        )
    senders = [_sender(table, f"{file}, [[events.senders]] number {number}") for number, table in enumerate(tables, 1)]
    names = [sender.name for sender in senders]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigurationError(
                what=f"two senders are called {name}",
                where=f"{file}, [[events.senders]] number {number + 1}",
                next_step="write one table for each sender: its name is the source of its events",
            )
    return EventSettings(
        host=setting_values.text(values, "host") or HOST,
        port=setting_values.port(values, "port") or PORT,
        max_age=setting_values.duration(values, "max_age", "1d", least=60),
        max_span=setting_values.duration(values, "max_span", "31d", least=3600),
        senders=tuple(senders),
    )


def _sender(table: Mapping[str, Any], where: str) -> SenderSettings:
    values: Values = {key: (value, f"{where}, {key}") for key, value in table.items()}
    if unknown := sorted(set(table) - SENDER_KEYS):
        raise ConfigurationError(
            what=f"a sender has no setting {', '.join(unknown)}",
            where=where,
            next_step=f"use: {', '.join(sorted(SENDER_KEYS))}",
        )
    name, secret = setting_values.text(values, "name"), setting_values.text(values, "secret") or None
    for key, value in (("name", name), ("secret", secret)):
        setting_values.check_name(value, key, of="a sender", where=f"{where}, {key}", example="shop")
    files = table.get("files", False)
    if not isinstance(files, bool):
        raise ConfigurationError(
            what=f"'{files}' is neither true nor false", where=f"{where}, files", next_step="write files = true"
        )
    if secret is None and not files:
        raise ConfigurationError(
            what="the sender has no way to send events",
            where=where,
            next_step='name the file of its token, secret = "shop", or let it write files, files = true',
        )
    return SenderSettings(name=name, secret=secret, files=files, datasets=setting_values.texts(values, "datasets"))
