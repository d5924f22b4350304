"""Types of single settings: what a value may be, and its normal form."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

SECRET = "{secret}"
"""Placeholder in the address of a channel for its secret."""
UNIX_SOCKET = "unix:"
"""A proxy that connects through a socket of the machine."""
_PLAIN = {"json", "form", "xml", "mailto"}
"""Schemes of channels without TLS; with an s at their end they have it."""


def refusal(what: str, write: str, *, private: bool = False) -> PydanticCustomError:
    """Build the error of a value, which is shown before `what`; its key, if it is private."""
    return PydanticCustomError("refusal", "{what}", {"what": what, "write": write, "private": private})


def is_local(address: str) -> bool:
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def _folder(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str):
        return value
    if "://" in value:
        raise refusal("is the address of a store", "give the path of a folder; a store can be mounted as one")
    return (info.context or Path.cwd()) / Path(value).expanduser()


Folder = Annotated[Path, BeforeValidator(_folder)]
"""The path of a folder or file; a relative one is relative to the home."""


def _matching(pattern: str, kind: str, example: str, *, private: bool = False) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise refusal(f"is not {kind}", f"write it like {example}", private=private)
        return text

    return AfterValidator(check)


Text = Annotated[str, Field(min_length=1)]
TextOrTexts = Annotated[tuple[Text, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
# Not shown: it may be a secret in the place of its name.
Name = Annotated[
    str, _matching(r"[A-Za-z0-9_.-]{1,64}", "a name of letters, digits, dots and hyphens", '"blog-1"', private=True)
]
TableName = Annotated[str, _matching(r'[^\s."]+(\.[^\s."]+)?', "the name of a table", '"table" or "schema.table"')]
PathStart = Annotated[str, _matching(r"[/*].*", "how a path begins, or a pattern", '["/admin/", "/*.php"]')]
HostName = Annotated[
    str,
    AfterValidator(str.lower),
    _matching(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", "the name of a host", '["blog.example.org"], without scheme and port'),
]


def _day(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        raise refusal("is not a day", "write it like 2026-01-05") from error


def _zone(value: str) -> str:
    try:
        return ZoneInfo(value).key
    except (OSError, ValueError, KeyError) as error:
        raise refusal("is not a time zone", 'write it like "Europe/Berlin"') from error


Zone = Annotated[str, AfterValidator(_zone)]
Day = Annotated[str, BeforeValidator(_day)]
BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def amount(text: str, units: Mapping[str, int]) -> int:
    """Return the number that a text like `4h` or `64m` means; -1 if it is no such text."""
    match = re.fullmatch(rf"(\d{{1,9}})([{''.join(units)}])", text.lower())
    return int(match[1]) * units[match[2]] if match else -1


def _between(units: Mapping[str, int], least: str, most: str) -> BeforeValidator:
    def check(value: object) -> int:
        number = amount(str(value), units)
        if not amount(least, units) <= number <= amount(most, units):
            raise refusal(
                "is not a number and a unit that this setting takes",
                f'write "{least}" to "{most}", in units of {", ".join(units)}',
            )
        return number

    return BeforeValidator(check)


LineSize = Annotated[int, _between(BYTES, "1k", "1g")]
FileSize = Annotated[int, _between(BYTES, "1k", "1024g")]
Duration = Annotated[float, _between(SECONDS, "0s", "9999d")]
Pause = Annotated[float, _between(SECONDS, "60s", "9999d")]


Heap = Annotated[str, _matching(r"\d{1,9}[mgMG]", "a size of memory", '"2g", in units of m, g')]


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        return urlsplit("") if parts.port == 0 else parts
    except ValueError:
        return urlsplit("")


def _address(example: str, *schemes: str) -> AfterValidator:
    def check(address: str) -> str:
        parts = _split(address)
        if parts.scheme not in schemes or not (parts.netloc or parts.scheme == "file") or parts.password:
            # Before an @ may be a password.
            raise refusal(
                f"is no address of the kind {schemes[0]}:", f"write one like {example}", private="@" in address
            )
        return address

    return AfterValidator(check)


def _database(address: str) -> str:
    if address.startswith(("postgresql://", "postgres://")):
        return address
    # libpq's other form has its password as one of its words.
    raise refusal(
        "is no address of the kind postgresql:", "write one like postgresql://user@host/database", private=True
    )


HttpAddress = Annotated[str, _address("https://example.com", "https", "http")]
MavenAddress = Annotated[str, _address("https://maven.example.com/root or file:///srv/maven", "https", "http", "file")]
Database = Annotated[str, AfterValidator(_database)]
DagsterStorage = Annotated[
    str,
    _matching(
        r"postgresql\+psycopg2://.+",
        "an address of SQLAlchemy with the driver of Dagster",
        "postgresql+psycopg2://user:password@host/database; tables that 0.1.0 has made are found with "
        "?options=-csearch_path%3Ddagster behind it",
        private=True,
    ),
]


def _remote(address: str | None) -> str | None:
    # What PySpark means by it without a server.
    if address is None or re.fullmatch(r"local(\[.*\])?", address):
        return None
    parts = _split(address)
    if parts.scheme != "sc" or not parts.hostname or parts.path.split(";")[0] not in ("", "/") or parts.query:
        raise refusal(
            "is not the address of a Spark Connect server",
            "write sc://host:port or sc://host:port/;use_ssl=true, or unset it for a local server",
            private=";" in address,
        )
    return address


SparkRemote = Annotated[str | None, AfterValidator(_remote)]
"""The address of a server; None for a server of the deployment."""


def _conf(value: object) -> object:
    if not isinstance(value, dict) or any(isinstance(item, (dict, list)) for item in value.values()):
        raise refusal("is not keys and values", 'write [spark.conf] and: "spark.sql.shuffle.partitions" = 8')
    return sorted((key, str(item).lower() if isinstance(item, bool) else str(item)) for key, item in value.items())


SparkConf = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_conf)]


def _channel(address: str, info: ValidationInfo) -> str:
    secret, parts = info.data.get("secret"), _split(address)
    if address == SECRET and secret:
        return address
    if not parts.scheme or "://" not in address:
        wrong = "is not an address of Apprise"
    elif parts.password not in (None, SECRET):
        wrong = "has a password"
    elif (SECRET in address) != (secret is not None):
        wrong = f"has {SECRET} where the secret belongs, if the channel has one"
    elif secret and parts.scheme in _PLAIN and not is_local(address):
        wrong = f"has a secret and no TLS: {parts.scheme}s:// has it"
    else:
        return address
    raise refusal(wrong, 'write it like address = "slack://{secret}/#data", secret = "slack"', private=True)


ChannelAddress = Annotated[str, AfterValidator(_channel)]


def _network(name: str) -> str:
    try:
        network = ipaddress.ip_network(name)
    except ValueError as error:
        raise refusal(
            f"is no address or network: {error}",
            'write addresses and networks like ["10.0.0.2", "192.0.2.0/24", "2001:db8::/32"]',
        ) from error
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is not None and network.prefixlen >= 96:
        return str(ipaddress.ip_network(f"{mapped}/{network.prefixlen - 96}"))
    return str(network)


Network = Annotated[str, AfterValidator(_network)]
"""An address or a network in its normal form: IPv4 written as IPv6 is IPv4."""
Proxy = Annotated[str, AfterValidator(lambda name: name if name == UNIX_SOCKET else _network(name))]
