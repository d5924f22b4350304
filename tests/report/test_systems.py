"""The operating system comes from the user agent, or from the device where the agent's is missing."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import ua_parser

import blog_log
from assets.report.systems import system_of
from assets.transforms.crawlers import category
from assets.transforms.user_agents import client_of

NAMED = {"Mac OS X": "macOS"}


def test_the_device_tells_the_system_that_the_agent_names() -> None:
    log = b"\n".join(blog_log.lines_of_a_log()).decode("utf-8", "replace")
    agents = Counter([*re.findall(r'"([^"]*)"$', log, flags=re.MULTILINE), *blog_log.AGENTS])
    told, silent = 0, 0
    for agent, lines in agents.items():
        client, system = client_of(agent), ua_parser.parse_os(agent)
        if category(agent) is not None or client.device_type is None or system is None:
            continue
        found = system_of(client.device_type)
        assert found in ("unknown", NAMED.get(system.family, system.family)), agent
        told, silent = told + lines * (found != "unknown"), silent + lines * (found == "unknown")
    assert silent < 0.01 * told


@pytest.mark.parametrize(
    ("device", "system"),
    [
        ("K", "Android"),
        ("Samsung SM-S918B", "Android"),
        # A Samsung without Android, and a text that is no device of an access log.
        ("Samsung GT-E2232", "unknown"),
        ("display", "unknown"),
        ("PC", "unknown"),
        ("unknown", "unknown"),
        ("MacBookPro8,1", "macOS"),
        ("Windows Phone", "Windows Phone"),
        ("chromebook", "Chrome OS"),
    ],
)
def test_a_device_that_several_systems_have_names_none(device: str, system: str) -> None:
    assert system_of(device) == system
