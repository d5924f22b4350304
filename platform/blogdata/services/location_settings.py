"""Reads the settings of the geolocation service: the section `[geolocation]`."""

from __future__ import annotations

from dataclasses import dataclass

from blogdata.services import setting_values
from blogdata.services.setting_values import Values

KEYS = {"url", "secret", "rate", "time_out"}


@dataclass(frozen=True, kw_only=True)
class LocationSettings:
    """The geolocation service.

    Args:
        url: Root address of the service; None: the embedded country table is used.
        secret: File name of its key under `<home>/secrets`; None: it wants no key.
        rate: Most requests a second.
        time_out: How long to wait for an answer, in seconds.
    """

    url: str | None = None
    secret: str | None = None
    rate: float = 10.0
    time_out: float = 10.0


def parse(values: Values) -> LocationSettings:
    """Read the settings.

    Args:
        values: The section `[geolocation]`.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    return LocationSettings(
        url=setting_values.address(values, "url", of="a geolocation service"),
        secret=setting_values.secret_name(values, of="a geolocation service", example="geolocation"),
        rate=setting_values.number(values, "rate", 10.0, 0.01, 1000.0),
        time_out=setting_values.number(values, "time_out", 10.0, 0.1, 300.0),
    )
