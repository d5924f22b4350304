"""Finds the client of a request behind the proxies that the settings name.

Who sends a request can put anything into `X-Forwarded-For` and `Forwarded`: only what a named proxy has appended is
believed. Behind such a proxy the list is read from the right. Named proxies in it are passed, the first other address
is the client. A word that is no address ends the search at the address before it: whoever hides behind a proxy shares
the address of that proxy.

Sources: RFC 7239, section 4 and 6; nginx, "Module ngx_http_realip_module" (`real_ip_recursive`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.transforms.log_clients import in_networks, is_address, normal_form, once
from blogdata.services.setting_types import UNIX_SOCKET

_QUOTE = r'\\"|\\x22|"'
_FORWARDED_FOR = r"(?:^|;)\s*+for\s*+=([^;]*+)"


def client(address: Column, forwarded: Column, proxies: Sequence[str]) -> Column:
    """Find the client of a request; null if there is none.

    Args:
        address: STRING, where the connection comes from, as logged.
        forwarded: STRING, `X-Forwarded-For` or `Forwarded`, as logged; null, empty or `-` if there is none.
        proxies: Addresses and networks of the proxies, or `unix:`; see
            :class:`blogdata.services.config.LogSettings`.
    """
    if not proxies:
        return normal_form(address)
    words = F.split(F.when(~forwarded.isin("", "-"), F.regexp_replace(forwarded, _QUOTE, "")), ",")
    behind = F.transform(F.reverse(words), lambda word: once(_hop(_forwarded_for(F.trim(word))), _only_address))
    hops = F.concat(F.array(_hop(address)), F.coalesce(behind, F.array().cast("array<string>")))
    return once(hops, lambda found: _first_unnamed(found, proxies))


def _forwarded_for(word: Column) -> Column:
    """Read the address of an element of `Forwarded`; one of `X-Forwarded-For` is an address itself."""
    return F.when(word.contains("="), F.regexp_extract(F.lower(word), _FORWARDED_FOR, 1)).otherwise(word)


def _hop(text: Column) -> Column:
    return F.when(text == UNIX_SOCKET, text).otherwise(normal_form(text))


def _only_address(hop: Column) -> Column:
    return F.when((hop == UNIX_SOCKET) | is_address(hop), hop)


def _first_unnamed(hops: Column, proxies: Sequence[str]) -> Column:
    named = F.transform(hops, lambda hop: F.coalesce(_is_named(hop, proxies), F.lit(False)))
    at = F.array_position(named, F.lit(False)).cast("int")
    found = F.coalesce(F.get(hops, at - 1), F.get(hops, at - 2))
    return F.nullif(F.when(at > 0, found).otherwise(F.element_at(hops, -1)), F.lit(UNIX_SOCKET))


def _is_named(hop: Column, proxies: Sequence[str]) -> Column:
    networks = [name for name in proxies if name != UNIX_SOCKET]
    return F.when(hop == UNIX_SOCKET, F.lit(UNIX_SOCKET in proxies)).otherwise(in_networks(hop, networks))
