"""Validates single values of the settings; an error names the value, where it was set, and what to write instead.

Every function takes the values of one section by key, each with its source: the variable or the place in the file.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from blogdata.errors import ConfigurationError

Values = Mapping[str, tuple[Any, str]]
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_name(name: str | None, key: str, *, of: str, where: str, example: str) -> None:
    """Check a short name that is safe as the name of a file.

    Args:
        name: The value; None: it is not set.

    Raises:
        ConfigurationError: It is not such a name.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigurationError(
            what=f"the {key} of {of} has 1 to 64 letters, digits, dots, hyphens and underscores",
            where=where,
            next_step=f'write it like {key} = "{example}"',
        )


def secret_name(values: Values, *, of: str, example: str) -> str | None:
    """Read `secret`: the name of a file under `<home>/secrets`, never a path to another one.

    Returns:
        The name; None if it is not set, or empty.

    Raises:
        ConfigurationError: It is not the name of a file.
    """
    name = text(values, "secret") or None
    if name is not None:
        check_name(name, "secret", of=of, where=values["secret"][1], example=example)
    return name


def address(values: Values, key: str, *, of: str) -> str | None:
    """Read the root address of an HTTP API.

    Returns:
        The address; None if it is not set, or empty.

    Raises:
        ConfigurationError: It is not such an address.
    """
    url = text(values, key) or None
    if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise ConfigurationError(
            what=f"{url!r} is not the address of {of}",
            where=values[key][1],
            next_step=f'write its root address, like {key} = "https://example.com"',
        )
    return url


def is_local(address: str) -> bool:
    """Return whether an address is on this machine."""
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def switch(values: Values) -> bool:
    """Read `on`: true or false."""
    value, source = values.get("on", (False, ""))
    known = {"true": True, "false": False}
    if str(value).lower() not in known:
        raise ConfigurationError(what=f"'{value}' is neither true nor false", where=source, next_step="write true")
    return known[str(value).lower()]


def day(values: Values, key: str = "begins") -> str | None:
    """Read a day as `2026-01-05`; None if it is not set."""
    text, source = values.get(key, (None, ""))
    if text is None:
        return None
    try:
        return date.fromisoformat(str(text)).isoformat()
    except ValueError as error:
        raise ConfigurationError(
            what=f"'{text}' is not a day", where=source, next_step="write it like 2026-01-05"
        ) from error


def choice(values: Values, key: str, default: str, allowed: tuple[str, ...]) -> str:
    """Read one of several words."""
    value, source = values.get(key, (default, ""))
    if value not in allowed:
        raise ConfigurationError(
            what=f"{value!r} is not a value of {key}",
            where=source,
            next_step=f"Use one of: {', '.join(allowed)}",
        )
    return str(value)


def number(values: Values, key: str, default: float, least: float, most: float) -> float:
    """Read a number between two bounds, both included."""
    value, source = values.get(key, (default, ""))
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise _bad_number(value, source, least, most) from error
    if not least <= number <= most:
        raise _bad_number(value, source, least, most)
    return number


def whole(values: Values, key: str, default: int, least: int, most: int) -> int:
    """Read a whole number between two bounds, both included."""
    found = number(values, key, default, least, most)
    if found != int(found):
        raise _bad_number(found, values[key][1], least, most, kind="whole number")
    return int(found)


def port(values: Values, key: str) -> int:
    """Read a port; 0 if it is not set."""
    return whole(values, key, 0, 0, 65535)


def database(values: Values, key: str, *, otherwise: str = "") -> str:
    """Read the address of a PostgreSQL database."""
    url, source = values[key]
    if urlsplit(str(url)).scheme not in ("postgresql", "postgres"):
        raise ConfigurationError(
            # The value is not shown: it may contain a password.
            what="that is not the address of a PostgreSQL server",
            where=source,
            next_step=f"write {otherwise}an address like postgresql://user:password@host:5432/database",
        )
    return str(url)


_MISREAD = re.compile(r"[*?\[\]{}\\|^%`\x00-\x1f\x7f]")


def home(environ: Mapping[str, str]) -> Path:
    """Return the home folder of the deployment that an environment names; it may not exist."""
    return store_folder(Path(environ.get("BLOGDATA_HOME") or "var").expanduser().absolute())


def store_folder(folder: Path) -> Path:
    """Check that the path of a folder with tables or checkpoints means the same to every library that opens it.

    Spark takes some characters for a pattern, SQL for the end of a name, and the Delta library for an address.

    Raises:
        ConfigurationError: It contains such a character.
    """
    found = _MISREAD.search(str(folder))
    if found is not None:
        raise ConfigurationError(
            what=f"the path of the deployment contains {found[0]!r}, which means something else to Spark or Delta",
            where=ascii(str(folder))[1:-1],
            next_step="choose a folder whose path has none of * ? [ ] { } \\ | ^ % ` and no control characters",
        )
    return folder


def size(values: Values, key: str, default: str, *, most: str = "1024g") -> int:
    """Read a number of bytes like `500k`, `64m` or `8g`, from 1k on; a unit is 1024 times the one before."""
    value, source = values.get(key, (default, ""))
    found, limit = _bytes(str(value)), _bytes(most)
    if found is None or limit is None or not 0 < found <= limit:
        raise ConfigurationError(
            what=f"{value!r} is not a size this setting takes",
            where=source,
            next_step=f'write at most {most}, as a whole number and a unit: {key} = "{default}"',
        )
    return found


def _bytes(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,9})([kmg])", text.lower())
    return int(match[1]) << {"k": 10, "m": 20, "g": 30}[match[2]] if match else None


def _bad_number(value: object, source: str, least: float, most: float, *, kind: str = "number") -> ConfigurationError:
    return ConfigurationError(
        what=f"{value!r} is not a {kind} this setting takes",
        where=source,
        next_step=f"Give a {kind} from {least:g} to {most:g}",
    )


def text(values: Values, key: str) -> str:
    """Read a text; empty if it is not set."""
    value, source = values.get(key, ("", ""))
    if not isinstance(value, str):
        raise ConfigurationError(what=f"{key} is not a text", where=source, next_step=f'write {key} = "..."')
    return value


def texts(values: Values, key: str) -> tuple[str, ...]:
    """Read a list of texts; empty if it is not set."""
    value, source = values.get(key, ([], ""))
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ConfigurationError(
            what=f"{key} is not a list of texts", where=source, next_step=f'write {key} = ["...", "..."]'
        )
    return tuple(value)


def text_or_texts(values: Values, key: str) -> tuple[str, ...]:
    """Read a text or a list of texts; empty if it is not set."""
    value, source = values.get(key, ([], ""))
    return texts({key: ([value] if isinstance(value, str) else value, source)}, key)


def folder(values: Mapping[str, tuple[Any, str]], key: str, default: Path, home: Path) -> Path:
    """Read the path of a folder: relative to the home if the file has it, to the current folder otherwise."""
    value, source = values.get(key, (default, ""))
    if "://" in str(value):
        raise ConfigurationError(
            what=f"{str(value)!r} is the address of a store, and a folder is needed",
            where=source,
            next_step="Give the path of a folder; a store can be mounted as one",
        )
    path = Path(str(value)).expanduser()
    return home / path if source.startswith(str(home)) else path.absolute()


def network(name: str, where: str, *, key: str) -> str:
    """Return an address or a network in its normal form: IPv4 written as IPv6 is IPv4.

    Raises:
        ConfigurationError: It is neither.
    """
    try:
        found = ipaddress.ip_network(name)
    except ValueError as error:
        raise ConfigurationError(
            what=f"{name!r} is no address or network: {error}",
            where=where,
            next_step=f'write addresses and networks like {key} = ["10.0.0.2", "192.0.2.0/24", "2001:db8::/32"]',
        ) from error
    mapped = found.network_address.ipv4_mapped if isinstance(found, ipaddress.IPv6Network) else None
    if mapped is not None and found.prefixlen >= 96:
        return str(ipaddress.ip_network(f"{mapped}/{found.prefixlen - 96}"))
    return str(found)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration(values: Values, key: str, default: str, *, least: float) -> float:
    """Read a duration like `30m`, `4h` or `1d`; return seconds."""
    value, source = values.get(key, (default, ""))
    match = re.fullmatch(r"(\d{1,6})([smhd])", str(value))
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if match is None or seconds < least:
        raise ConfigurationError(
            what=f"{value!r} is not a duration this setting takes",
            where=source,
            next_step=f'write at least {least:g} seconds, with a unit: {key} = "30m", "4h" or "1d"',
        )
    return float(seconds)
