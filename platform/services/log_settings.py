"""Reads the settings of access logs: the section `[logs]`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from errors import ConfigurationError
from services import setting_values
from services.setting_values import Values

KEYS = {"proxies"}
UNIX_SOCKET = "unix:"


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """How access logs are read.

    Args:
        proxies: Addresses and networks of the proxies whose `X-Forwarded-For` or `Forwarded` is believed, in their
            normal form; `unix:` for one that connects through a socket of the machine.
    """

    proxies: tuple[str, ...] = ()


def parse(values: Values) -> LogSettings:
    """Read the settings.

    Args:
        values: The section `[logs]`.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    return LogSettings(
        proxies=tuple(_proxy(name, values["proxies"][1]) for name in setting_values.texts(values, "proxies"))
    )


def _proxy(name: str, where: str) -> str:
    return name if name == UNIX_SOCKET else network(name, where, key="proxies")


def network(name: str, where: str, *, key: str) -> str:
    """Return an address or a network in its normal form: IPv4 written as IPv6 is IPv4.

    Args:
        name: The text of the settings.
        where: Where it stands in the settings.
        key: Name of the setting.

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
