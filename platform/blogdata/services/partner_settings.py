"""Reads the settings of the partner who gets events: the section `[partner]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from blogdata.services import setting_values
from blogdata.services.setting_values import Values

PartnerMode = Literal["bins", "individual"]
KEYS = {"url", "secret", "mode", "wait", "timeout", "patience"}


@dataclass(frozen=True, kw_only=True)
class PartnerSettings:
    """The partner's API, and how events are sent to it.

    Args:
        url: Root address of its API; None: there is no partner.
        secret: File name of its key under `<home>/secrets`; None: it needs none.
        wait: Seconds after the end of an hour before its events are sent, so that late ones still find their place.
        timeout: Seconds to wait for an answer.
        patience: Seconds for which one request is tried in a run.
    """

    url: str | None = None
    secret: str | None = None
    mode: PartnerMode = "bins"
    wait: float = 3600.0
    timeout: float = 30.0
    patience: float = 60.0


def parse(values: Values) -> PartnerSettings:
    """Read the settings.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    return PartnerSettings(
        url=setting_values.address(values, "url", of="a partner"),
        secret=setting_values.secret_name(values, of="a partner", example="partner"),
        mode=cast(PartnerMode, setting_values.choice(values, "mode", "bins", get_args(PartnerMode))),
        wait=setting_values.duration(values, "wait", "1h", least=0),
        timeout=setting_values.number(values, "timeout", 30.0, 0.1, 600.0),
        patience=setting_values.number(values, "patience", 60.0, 0.0, 3600.0),
    )
