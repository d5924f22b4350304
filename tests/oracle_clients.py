"""Finds the client of a log line in plain Python, sharing no code with the platform."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address, ip_network


def client_of(address: str, forwarded: str = "-", proxies: Sequence[str] = ()) -> str | None:
    """Return the visitor's normalized address or host name; None if there is none."""
    found = hop_of(address)
    for word in reversed(forwarded.split(",") if forwarded not in ("", "-") else []):
        if found is None or not _is_named(found, proxies):
            break
        further = hop_of(_forwarded_for(word))
        if further is None or not (further == "unix:" or place_of(further)):
            break
        found = further
    return None if found == "unix:" else found


def hop_of(text: str) -> str | None:
    """Return a normalized address, a host name, `unix:`, or None."""
    text = text if text == "unix:" else text.lower()
    with_port = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:]*))(?::[0-9]{1,5})?", text)
    bare = with_port[1] or with_port[2] or "" if with_port else text
    if text == "unix:" or len(text) > 253:
        return text if text == "unix:" else None
    try:
        found = ip_address(bare)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        name = re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", text) and all(labels) and not re.fullmatch("[0-9]+", labels[-1])
        return text.removesuffix(".") if name else None
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or IPv6Address(int(found))
    elif text.startswith("["):
        return None
    return str(found)


def place_of(client: str) -> str | None:
    """Return the address if it can have a place; None for a host name."""
    try:
        return str(ip_address(client))
    except ValueError:
        return None


def _forwarded_for(word: str) -> str:
    word = re.sub(r'\\"|\\x22|"', "", word).strip(" ")
    if "=" not in word:
        return word
    pairs = [pair.strip().partition("=") for pair in word.lower().split(";")]
    return next((value for name, _, value in pairs if name.strip() == "for"), "")


def _is_named(hop: str, proxies: Sequence[str]) -> bool:
    address = place_of(hop)
    if address is None:
        return hop in proxies
    named = [ip_network(one) for one in proxies if one != "unix:"]
    return any(one.version == ip_address(address).version and ip_address(address) in one for one in named)
