"""What kind of site readers came from, by its host: a table of the project's own, and files that the settings name.

A file lists hosts by kind, in YAML. A host stands for its subdomains, too, and that of a search engine for itself
alone: it has much that is no search. `{}` stands for a country. Entries with a path are passed over, because a page
view keeps no more of its referrer than the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path

import yaml

from blogdata.errors import ConfigurationError
from quality.contracts.columns import DIRECT, UNKNOWN

_TABLE = Path(__file__).with_name("referrers.yml")


class ReferrerKind(str, Enum):
    SEARCH = "search"
    SOCIAL = "social"
    ASSISTANT = "AI assistant"
    MAIL = "mail"
    OTHER = "other sites"
    SPAM = "referrer spam"
    OWN = "this blog"
    DIRECT = "no referrer"
    UNKNOWN = "unknown"


_KINDS = {
    "spam": ReferrerKind.SPAM,
    "search": ReferrerKind.SEARCH,
    "social": ReferrerKind.SOCIAL,
    "assistant": ReferrerKind.ASSISTANT,
    "mail": ReferrerKind.MAIL,
    ReferrerKind.ASSISTANT.value: ReferrerKind.ASSISTANT,
    ReferrerKind.OTHER.value: ReferrerKind.OTHER,
}
"""Names of the kinds in a file."""
_NO_HOSTS = {DIRECT: ReferrerKind.DIRECT, UNKNOWN: ReferrerKind.UNKNOWN, ReferrerKind.SPAM.value: ReferrerKind.SPAM}
_BEFORE, _AFTER = r"[a-z]{2}\.", r"\.(?:(?:com|org|net|co|it|edu)\.)?[a-z]{2}"
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?((?:\{\}\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?:\.\{\})?)/?")


@dataclass(frozen=True, kw_only=True)
class Referrers:
    """The hosts that are known; the blog's `own`, without `www.`, are found by what they do if there are none."""

    own: frozenset[str] = frozenset()
    hosts: Mapping[str, ReferrerKind] = field(default_factory=dict)
    patterns: Mapping[re.Pattern[str], ReferrerKind] = field(default_factory=dict)

    @classmethod
    def read(cls, own: Iterable[str] = (), files: Iterable[Path] = ()) -> Referrers:
        """Read the project's table and files that extend it; what a later file says of a host holds."""
        entries: dict[str, ReferrerKind] = dict(_entries(_TABLE))
        for file in files:
            entries.update(_entries(file))
        return cls(
            own=frozenset(_plain(host) for host in own),
            hosts={host: kind for host, kind in entries.items() if "{}" not in host},
            patterns={_pattern(host): kind for host, kind in entries.items() if "{}" in host},
        )

    def kind_of(self, host: str) -> ReferrerKind:
        return _NO_HOSTS.get(host) or self._listed(self.site_of(host)) or ReferrerKind.OTHER

    def site_of(self, host: str) -> str:
        """Return the site that a host of page views belongs to: the entry of a list, or the host without `www.`."""
        name = parent = _plain(host)
        if self._listed(name) is not None:
            return name
        while "." in parent:
            parent = parent.partition(".")[2]
            found = self.hosts.get(parent)
            if found is not None:
                return name if found is ReferrerKind.SEARCH else parent
        return name

    def _listed(self, name: str) -> ReferrerKind | None:
        matching = (kind for pattern, kind in self.patterns.items() if pattern.fullmatch(name))
        return self.hosts.get(name) or next(matching, None)


@cache
def known() -> Referrers:
    return Referrers.read()


def _plain(host: str) -> str:
    return host.lower().removeprefix("www.")


def _pattern(host: str) -> re.Pattern[str]:
    begins, ends = host.startswith("{}."), host.endswith(".{}")
    middle = host.removeprefix("{}.").removesuffix(".{}")
    return re.compile((_BEFORE if begins else "") + re.escape(middle) + (_AFTER if ends else ""))


def _entries(file: Path) -> Iterator[tuple[str, ReferrerKind]]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        listed = [(_KINDS[kind], str(host)) for kind, hosts in content.items() for host in hosts]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, yaml.YAMLError) as error:
        raise ConfigurationError(
            what=f"the list of referrers cannot be read: {type(error).__name__}: {error}",
            where=f"{file}, named by [logs] referrers",
            next_step=f"make it YAML: lists of hosts by kind, which is one of {', '.join(_KINDS)}",
        ) from error
    for kind, text in listed:
        found = _HOST.fullmatch(text.strip().lower())
        if found is not None:
            yield found[1].removeprefix("www."), kind
