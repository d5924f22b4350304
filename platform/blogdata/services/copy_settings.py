"""Reads where copies of the tables go: the sections `[copies.analyst]` and alike, one for each reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.services.setting_values import Values

KEYS = {"engineer", "analyst", "partner", "staging"}
"""Who reads copies: the roles, and staging."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """A folder with what a role sees.

    Args:
        folder: The folder, absolute; it has a folder for each dataset.
    """

    role: str
    folder: Path
    group: str


def parse(values: Values, *, home: Path) -> tuple[Export, ...]:
    """Read the settings; relative folders are relative to the home.

    Raises:
        ConfigurationError: A reader has not both a folder and a group.
    """
    return tuple(_export(reader, value, where, home) for reader, (value, where) in sorted(values.items()))


def _export(reader: str, value: object, where: str, home: Path) -> Export:
    match value:
        case {"folder": str(folder), "group": str(group), **others} if folder and group and not others:
            return Export(role=reader, folder=(home / Path(folder).expanduser()).resolve(), group=group)
    raise ConfigurationError(
        what=f"{reader} needs a folder and a group, and nothing else",
        where=where,
        next_step=f'write [copies.{reader}] with folder = "/srv/blog/{reader}" and group = "the group that reads it"',
    )
