"""The client of a logged request as a Column: an address in its one normal form, or a host name.

Who sends a request can put anything into `X-Forwarded-For` and `Forwarded`: only what a proxy that the settings name
has appended is believed. Behind such a proxy the list is read from the right. Named proxies in it are passed, the first
other address is the client. A word that is no address ends the search at the address before it: whoever hides behind a
proxy shares the address of that proxy.

IPv4 has no port (`203.0.113.9:4711`), IPv6 neither brackets, port nor zone and the form of RFC 5952, IPv4 written as
IPv6 (`::ffff:203.0.113.9`) is IPv4, and a host name is in lower case. Nothing else is a client: not `-` or `unix:`, and
not `010.0.0.1`, which some read as 8.0.0.1.

Sources: RFC 5952, section 4; RFC 4291, section 2.5.5.2; RFC 7239, section 4 and 6; nginx, "Module
ngx_http_realip_module" (`real_ip_recursive`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from blogdata.services.setting_types import UNIX_SOCKET

_QUOTE = r'\\"|\\x22|"'
_FORWARDED_FOR = r"(?:^|;)\s*+for\s*+=([^;]*+)"
_LONGEST = 253
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_PORT = r"(?::\d{1,5})?"
_GROUP = "[0-9a-f]{1,4}+"
_SOME_GROUPS = f"(?:{_GROUP}(?::{_GROUP}){{0,6}}+)?+"
_IPV6 = rf"^(?:{_GROUP}(?::{_GROUP}){{7}}|(?!(?::*+{_GROUP}){{8}}){_SOME_GROUPS}::{_SOME_GROUPS})\z"
_MAPPED = rf"^::ffff:({_GROUP}):({_GROUP})\z"
# A name whose last label is a number would be read as an address.
_NAME = r"^(?!.*\.\.)(?!(?:.*\.)?\d++\.?\z)[a-z0-9_][a-z0-9._-]*+\z"


def client(address: Column, forwarded: Column, proxies: Sequence[str]) -> Column:
    """Find the client of a request; null if there is none.

    `forwarded` is `X-Forwarded-For` or `Forwarded` as logged; `proxies` as of
    :class:`blogdata.services.config.LogSettings`.
    """
    if not proxies:
        return normal_form(address)
    words = F.split(F.when(~forwarded.isin("", "-"), F.regexp_replace(forwarded, _QUOTE, "")), ",")
    behind = F.transform(F.reverse(words), lambda word: once(_hop(_forwarded_for(F.trim(word))), _only_address))
    hops = F.concat(F.array(_hop(address)), F.coalesce(behind, F.array().cast("array<string>")))
    return once(hops, lambda found: _first_unnamed(found, proxies))


def normal_form(text: Column) -> Column:
    """Return the normal form of an address or a host name; null for anything else."""
    usual = text.rlike(rf"^{_IPV4}\z")
    # In a lambda: Spark generates no code for it, which would be too much for the JVM's compiler.
    return F.when(usual, text).otherwise(once(F.when(F.length(text) <= _LONGEST, F.lower(text)), _unusual))


def is_address(client: Column) -> Column:
    """Build the condition that a client is an address; a host name has no place."""
    return client.rlike(r":|\.\d++\z")


def in_networks(client: Column, networks: Sequence[str]) -> Column:
    """Build the condition that a client, in its normal form, is in a network, such as `203.0.113.0/24`.

    It is null for no client, and for a host name.
    """
    found = [ipaddress.ip_network(name) for name in networks]
    of_ipv4 = F.transform(F.split(client, r"\."), lambda octet: F.lpad(F.conv(octet, 10, 2), 8, "0"))
    of_ipv6 = F.transform(
        F.split(F.btrim(_groups(client), F.lit(":")), ":"), lambda group: F.lpad(F.conv(group, 16, 2), 16, "0")
    )
    return F.when(client.contains(":"), F.array_join(of_ipv6, "").rlike(_prefixes(found, version=6))).when(
        is_address(client), F.array_join(of_ipv4, "").rlike(_prefixes(found, version=4))
    )


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


def _prefixes(networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network], *, version: int) -> str:
    own = [network for network in networks if network.version == version]
    bits = [f"{int(one.network_address):0{one.max_prefixlen}b}"[: one.prefixlen] for one in own]
    return f"^(?:{'|'.join(bits)})" if bits else "(?!)"


def _groups(ipv6: Column) -> Column:
    """Write the `::` of an IPv6 address out; there is a colon around each group."""
    missing = F.repeat(F.lit("0:"), F.lit(8) - F.regexp_count(ipv6, F.lit(_GROUP)))
    written = F.replace(ipv6, F.lit("::"), F.concat(F.lit(":"), missing))
    return F.concat(F.lit(":"), F.btrim(written, F.lit(":")), F.lit(":"))


def once(value: Column, compute: Callable[[Column], Column]) -> Column:
    """Compute a Column from a value that it uses several times, and that is computed once."""
    return F.get(F.transform(F.array(value), compute), F.lit(0))


def _unusual(text: Column) -> Column:
    bare = F.regexp_replace(text, rf"^\[([^\[\]]*+)\]{_PORT}\z", "$1")
    return (
        F.when(text.rlike(rf"^{_IPV4}{_PORT}\z"), F.substring_index(text, ":", 1))
        .when(text.contains(":"), once(F.regexp_replace(bare, r"%[^%]++\z", ""), _ipv6))
        .when(text.rlike(_NAME), F.rtrim(text, F.lit(".")))
    )


def _ipv6(text: Column) -> Column:
    tail = F.substring_index(text, ":", -1)
    head = F.substring(text, F.lit(1), F.length(text) - F.length(tail))
    octets = F.transform(F.split(tail, r"\."), lambda octet: octet.try_cast("int"))
    last = [F.lower(F.hex(octets[at] * 256 + octets[at + 1])) for at in (0, 2)]
    in_groups = F.when(tail.rlike(rf"^{_IPV4}\z"), F.concat(head, last[0], F.lit(":"), last[1])).otherwise(text)
    return once(F.when(in_groups.rlike(_IPV6), in_groups), lambda valid: once(_shortened(valid), _unmapped))


def _shortened(ipv6: Column) -> Column:
    """Remove leading zeros, and write `::` for the longest run of zeros, the first of several."""
    bare = F.regexp_replace(_groups(ipv6), ":0+(?=[0-9a-f])", ":")
    short = F.regexp_replace(bare, r"^(.*?:)0((?::0)++)(?=:)(?!.*:0\2:0:)", "$1")
    return F.regexp_replace(short, r"^:(?!:)|(?<!:):\z", "")


def _unmapped(ipv6: Column) -> Column:
    halves = [F.conv(F.regexp_extract(ipv6, _MAPPED, group), 16, 10).cast("int") for group in (1, 2)]
    octets = [octet for half in halves for octet in (F.shiftright(half, 8), half.bitwiseAND(255))]
    return F.when(ipv6.rlike(_MAPPED), F.concat_ws(".", *octets)).otherwise(ipv6)
