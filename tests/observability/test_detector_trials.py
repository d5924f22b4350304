"""Trials: Flow Interruption Detector, Skew Detector, Lag Detector, SLA Misses Detector, drift observers.

The page is regenerated from the trials whenever their code changes; here its figures are compared with the bounds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import detector_page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "detectors.md"


def rows(heading: str) -> list[list[str]]:
    """Read the table under a heading, without its two header lines."""
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")
    part = after.partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_quiet_quarters_raise_nothing() -> None:
    listed = rows("Quiet quarters")
    assert [detector for detector, _, _ in listed] == ["flow", "skew", "lag", "sla", "drift", "measures"]
    assert all(int(readings.replace(",", "")) > 250 and alarms == "0" for _, readings, alarms in listed)


def test_faults_with_a_bound_are_all_found() -> None:
    bounded = [row for row in rows("Seeded faults") if row[5] != "none"]
    assert {row[0] for row in bounded} == {"flow", "skew", "lag", "sla", "drift", "measures"}
    assert {(row[3], row[4]) for row in bounded} == {("100%", "100%")}


def test_no_alarm_is_false() -> None:
    assert {row[4] for row in rows("Seeded faults")} == {"100%"}


@pytest.mark.campaign
def test_the_trials_end_as_the_page_says() -> None:
    assert "\n".join(detector_page.trials()) in PAGE.read_text(encoding="utf-8")
