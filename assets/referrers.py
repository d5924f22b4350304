"""What kind of site readers came from, by its host: the table `referrers.yml`.

It lists hosts by kind. A host stands for its subdomains, too, and that of a search engine for itself alone: it has much
that is no search. `{}` stands for a country.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path

import yaml

from quality.contracts.columns import DIRECT, UNKNOWN

_TABLE = Path(__file__).with_name("referrers.yml")


class ReferrerKind(str, Enum):
    SEARCH = "search"
    SOCIAL = "social"
    ASSISTANT = "AI assistant"
    MAIL = "mail"
    OTHER = "other sites"
    OWN = "this blog"
    DIRECT = "no referrer"
    UNKNOWN = "unknown"


_NO_HOSTS = {DIRECT: ReferrerKind.DIRECT, UNKNOWN: ReferrerKind.UNKNOWN}
_BEFORE, _AFTER = r"[a-z]{2}\.", r"\.(?:(?:com|org|net|co|it|edu)\.)?[a-z]{2}"


def kind_of(host: str) -> ReferrerKind:
    return _NO_HOSTS.get(host) or _listed(site_of(host)) or ReferrerKind.OTHER


def site_of(host: str) -> str:
    """Return the site that a host of page views belongs to: the entry of the table, or the host without `www.`."""
    name = parent = host.lower().removeprefix("www.")
    if _listed(name) is not None:
        return name
    hosts, _ = _table()
    while "." in parent:
        parent = parent.partition(".")[2]
        kind = hosts.get(parent)
        if kind is not None:
            return name if kind is ReferrerKind.SEARCH else parent
    return name


def _listed(name: str) -> ReferrerKind | None:
    hosts, patterns = _table()
    matching = (kind for pattern, kind in patterns.items() if pattern.fullmatch(name))
    return hosts.get(name) or next(matching, None)


@cache
def _table() -> tuple[Mapping[str, ReferrerKind], Mapping[re.Pattern[str], ReferrerKind]]:
    """Read the hosts of the table, and the patterns of those with a country."""
    listed: Mapping[str, list[str]] = yaml.safe_load(_TABLE.read_text(encoding="utf-8"))
    kinds = {host: ReferrerKind(kind) for kind, hosts in listed.items() for host in hosts}
    hosts = {host: kind for host, kind in kinds.items() if "{}" not in host}
    return hosts, {_pattern(host): kind for host, kind in kinds.items() if "{}" in host}


def _pattern(host: str) -> re.Pattern[str]:
    begins, ends = host.startswith("{}."), host.endswith(".{}")
    middle = host.removeprefix("{}.").removesuffix(".{}")
    return re.compile((_BEFORE if begins else "") + re.escape(middle) + (_AFTER if ends else ""))
