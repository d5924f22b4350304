"""The client of a logged request: an address in its one normal form, or a host name.

A visitor can put anything into `X-Forwarded-For` and `Forwarded`, so only what a proxy of the settings has appended
counts. Behind such a proxy the list is read from the right: the first address that is none of these proxies is the
client. A word that is no address ends the search at the address before it.

IPv4 has no port (`203.0.113.9:4711`), IPv6 neither brackets, port nor zone and the form of RFC 5952, IPv4 written as
IPv6 (`::ffff:203.0.113.9`) is IPv4, and a host name is in lower case. Nothing else is a client: not `-` or `unix:`, and
not `010.0.0.1`, which some read as 8.0.0.1.

Sources: RFC 5952, section 4; RFC 4291, section 2.5.5.2; RFC 7239, section 4 and 6; nginx, "Module
ngx_http_realip_module" (`real_ip_recursive`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from blogdata.operate.setting_types import UNIX_SOCKET

_QUOTE = re.compile(r'\\"|\\x22|"')
_FORWARDED_FOR = re.compile(r"(?:^|;)\s*for\s*=([^;]*)", re.ASCII)
_LONGEST = 253
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"({_OCTET}(?:\.{_OCTET}){{3}})(?::\d{{1,5}})?", re.ASCII)
_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::\d{1,5})?", re.ASCII)
_ZONE = re.compile(r"%[^%]+\Z")
# A name whose last label is a number would be read as an address.
_NAME = re.compile(r"(?!.*\.\.)(?!(?:.*\.)?\d+\.?\Z)[a-z0-9_][a-z0-9._-]*", re.ASCII)


def client_of(address: str, forwarded: str | None, proxies: tuple[str, ...]) -> str | None:
    """Find the client of a request; None if there is none.

    `forwarded` is `X-Forwarded-For` or `Forwarded` as logged; `proxies` as of
    :class:`blogdata.operate.config.LogSettings`.
    """
    client = _hop(address)
    words = _QUOTE.sub("", forwarded).split(",") if proxies and forwarded not in (None, "", "-") else []
    while words and client and (client in proxies if client == UNIX_SOCKET else in_networks(client, proxies)):
        further = _hop(_forwarded_for(words.pop().strip(" ")))
        if further is None or not (further == UNIX_SOCKET or is_address(further)):
            break
        client = further
    return None if client == UNIX_SOCKET else client


def normal_form(text: str) -> str | None:
    return _normal_form(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=65_536)
def _normal_form(text: str) -> str | None:
    if usual := _IPV4.fullmatch(text):
        return usual[1]
    text = text.lower()
    if ":" in text:
        bracketed = _BRACKETED.fullmatch(text)
        return _ipv6(_ZONE.sub("", bracketed[1] if bracketed else text))
    return text.removesuffix(".") if _NAME.fullmatch(text) else None


def is_address(client: str) -> bool:
    """Return whether a client, in its normal form, is an address; a host name has no place."""
    return ":" in client or client.rpartition(".")[2].isdecimal()


@lru_cache(maxsize=65_536)
def in_networks(client: str, networks: tuple[str, ...]) -> bool:
    """Return whether a client, in its normal form, is in a network, such as `203.0.113.0/24`; a name is not."""
    if not networks or not is_address(client):
        return False
    address = ip_address(client)
    return any(address in network for network in _networks(networks))


@lru_cache(maxsize=64)
def _networks(names: tuple[str, ...]) -> list[IPv4Network | IPv6Network]:
    return [ip_network(name) for name in names if name != UNIX_SOCKET]


def _forwarded_for(word: str) -> str:
    """Read the address of an element of `Forwarded`; one of `X-Forwarded-For` is an address itself."""
    if "=" not in word:
        return word
    match = _FORWARDED_FOR.search(word.lower())
    return match[1] if match else ""


def _hop(text: str) -> str | None:
    return text if text == UNIX_SOCKET else normal_form(text)


def _ipv6(text: str) -> str | None:
    if "%" in text:
        return None
    try:
        address = IPv6Address(text)
    except ValueError:
        return None
    return str(address.ipv4_mapped or address)
