"""Reads the settings of which lines of access logs count for nobody, and for crawlers: `[logs.exclude]` and
`[logs.crawlers]`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from blogdata.errors import ConfigurationError
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

KEYS = {"exclude", "crawlers"}
_KEYS = {"exclude": {"addresses", "agents", "paths"}, "crawlers": {"addresses", "robots_txt", "most_views"}}
MOST_VIEWS = 1000


@dataclass(frozen=True, kw_only=True)
class LogFilters:
    """Which requests of an access log are left out, besides those that no person makes by their kind.

    Args:
        paths: What the paths of excluded requests begin with, or, with `*` or `?`, what they look like.
    """

    addresses: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    crawler_addresses: tuple[str, ...] = ()
    robots_txt: bool = True
    most_views: int = MOST_VIEWS

    @property
    def version(self) -> str:
        """What identifies the settings."""
        return "default" if self == LogFilters() else hashlib.sha256(repr(self).encode()).hexdigest()[:8]


def parse(values: Values) -> LogFilters:
    """Read the settings.

    Raises:
        ConfigurationError: A key is unknown, or a value cannot be used.
    """
    exclude, crawlers = _part(values, "exclude"), _part(values, "crawlers")
    return LogFilters(
        addresses=_networks(exclude),
        agents=tuple(text.lower() for text in setting_values.texts(exclude, "agents")),
        paths=_paths(exclude),
        crawler_addresses=_networks(crawlers),
        robots_txt=_robots_txt(crawlers),
        most_views=setting_values.whole(crawlers, "most_views", MOST_VIEWS, 1, 1_000_000_000),
    )


def _part(values: Values, name: str) -> Values:
    part, source = values.get(name, ({}, ""))
    unknown = sorted(part.keys() - _KEYS[name]) if isinstance(part, dict) else [name]
    if unknown:
        raise ConfigurationError(
            what=f"unknown setting {', '.join(unknown)!r}",
            where=source,
            next_step=f"write a table [logs.{name}] with {', '.join(sorted(_KEYS[name]))}",
        )
    return {key: (value, f"{source}.{key}") for key, value in part.items()}


def _networks(values: Values) -> tuple[str, ...]:
    texts = setting_values.texts(values, "addresses")
    return tuple(setting_values.network(text, values["addresses"][1], key="addresses") for text in texts)


def _paths(values: Values) -> tuple[str, ...]:
    paths = setting_values.texts(values, "paths")
    for path in paths:
        if not path.startswith(("/", "*")):
            raise ConfigurationError(
                what=f"no path begins like {path!r}",
                where=values["paths"][1],
                next_step='write how paths begin, or a pattern, like paths = ["/admin/", "/*.php"]',
            )
    return paths


def _robots_txt(values: Values) -> bool:
    value, source = values.get("robots_txt", (True, ""))
    if not isinstance(value, bool):
        raise ConfigurationError(what=f"{value!r} is neither true nor false", where=source, next_step="write true")
    return value
