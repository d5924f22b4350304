"""Reads the settings of the site: the section `[site]`, and `[logs] referrers`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

KEYS, LOG_KEYS = {"hosts"}, {"referrers"}
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """What is the site itself, and what is known of those that link to it.

    Args:
        hosts: The site's own hosts, in lower case; empty: the report finds them.
    """

    hosts: tuple[str, ...] = ()
    referrers: tuple[Path, ...] = ()


def parse(site: Values, logs: Values, *, home: Path) -> SiteSettings:
    """Read the settings.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    hosts = tuple(host.lower() for host in setting_values.texts(site, "hosts"))
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise ConfigurationError(
                what=f"{host!r} is not the name of a host",
                where=site["hosts"][1],
                next_step='write names without a scheme, port and path, like hosts = ["blog.example.org"]',
            )
    files = setting_values.texts(logs, "referrers")
    return SiteSettings(hosts=hosts, referrers=tuple(home / Path(file).expanduser() for file in files))
