"""User agents: browser and device, parsed on the client by a maintained library, never in a Python worker.

Many log lines share few distinct agents. These are collected to the client, parsed there once (`ua-parser`), and sent
back as a literal table to join; a cluster needs neither the library nor a Python worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_LONGEST_AGENT = 4096
_TABLE = "agent string, browser string, browser_version string, device_type string, device_version string"


class Client(NamedTuple):
    """The parts of an agent string; None for a part it does not name.

    Args:
        device_type: Family of the device, such as `iPhone`; on a desktop, which names no device, family of the system.
    """

    browser: str | None
    browser_version: str | None
    device_type: str | None
    device_version: str | None


@lru_cache(maxsize=65_536)
def client_of(agent: str) -> Client:
    """Parse an agent string; characters after the first 4,096 are ignored."""
    import ua_parser

    found = ua_parser.parse(agent[:_LONGEST_AGENT])
    browser, system, device = found.user_agent, found.os, found.device
    return Client(
        browser=browser.family if browser else None,
        browser_version=_version(browser.major, browser.minor, browser.patch) if browser else None,
        device_type=device.family if device else system.family if system else None,
        device_version=_version(system.major, system.minor, system.patch) if system else None,
    )


def distinct(frame: DataFrame, agent: str) -> list[str]:
    """Collect the distinct agents of a frame to the client (an action)."""
    return [row[0] for row in frame.select(agent).where(F.col(agent).isNotNull()).distinct().collect()]


def table(spark: SparkSession, agents: Iterable[str]) -> DataFrame:
    """Build the literal table of parsed agents.

    Returns:
        agent, browser, browser_version, device_type and device_version, all STRING.
    """
    return spark.createDataFrame([(agent, *client_of(agent)) for agent in sorted(agents)], _TABLE)


def _version(*parts: str | None) -> str | None:
    given = []
    for part in parts:
        if part is None:
            break
        given.append(part)
    return ".".join(given) or None
