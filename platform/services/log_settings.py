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
    if name == UNIX_SOCKET:
        return name
    try:
        network = ipaddress.ip_network(name)
    except ValueError as error:
        raise ConfigurationError(
            what=f"{name!r} is no address or network: {error}",
            where=where,
            next_step='write addresses and networks like proxies = ["10.0.0.2", "192.0.2.0/24", "2001:db8::/32"]',
        ) from error
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is not None and network.prefixlen >= 96:
        return str(ipaddress.ip_network(f"{mapped}/{network.prefixlen - 96}"))
    return str(network)
