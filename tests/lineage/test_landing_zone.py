"""Readiness Marker: accepted layouts of a landing zone, including links and producers without flags."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from blogdata.patterns.ingestion import readiness_marker
from blogdata.services import config
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event

HOURS = tuple(f"2026-01-05T{hour:02d}" for hour in (10, 11, 12))


def pages(deployment: Deployment) -> list[str]:
    return sorted(deployment.rows("silver.visits", "page"))


@pytest.mark.campaign
def test_a_link_leading_out_blocks_only_its_hour(deploy: Deploy, tmp_path: Path) -> None:
    made = deploy("links")
    disk = tmp_path / "disk"
    (disk / "kept").mkdir(parents=True)
    made.landing.symlink_to(disk)
    for at, hour in enumerate(HOURS):
        made.land(hour, [event(f"{10 + at}:05", f"/{at}")])
    (disk / "kept" / "visits.json").write_bytes(event("10:06", "/linked") + b"\n")
    (made.folder(HOURS[0]) / "more.json").symlink_to("../../../kept/visits.json")
    link = made.folder(HOURS[1]) / "passwd.json"
    link.symlink_to("/etc/passwd")
    outcome = made.run()
    (problem,) = outcome.problems
    assert problem.startswith(f"a link leads out of the landing zone, to /etc/passwd\n  where: {link}\n")
    assert pages(made) == ["/0", "/2", "/linked"]
    assert made.rows("bronze.dead_letters", "raw") == []
    refused = made.run(hours=(HOURS[0], HOURS[2]), select=["bronze.visits"]).problems
    assert refused == [], "a span covers hours that could run"
    link.unlink()
    assert made.run().problems == []
    # A link added later withdraws nothing.
    link.symlink_to("/etc/passwd")
    assert len(made.run().problems) == 1
    (problem,) = made.run(hours=(HOURS[1], HOURS[1]), select=["bronze.visits"]).problems
    assert "to /etc/passwd" in problem
    assert pages(made) == ["/0", "/1", "/2", "/linked"]
    assert made.problems() == []


@pytest.fixture
def flagless(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A deployment whose producers write no flags, some time after their last file."""
    monkeypatch.setattr(readiness_marker, "QUIET", timedelta(0))
    made = deploy("flagless")
    with (made.settings.home / "blogdata.toml").open("a") as file:
        file.write('[landing]\nready = "next_exists"\n')
    return Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(made.settings.home)}))


def land(deployment: Deployment, hour: str, *lines: bytes, name: str = "visits.json") -> None:
    """Put a file into an hour, and no flag."""
    deployment.land(hour, lines, name=name).with_name("_SUCCESS").unlink()


@pytest.mark.campaign
def test_flagless_hours_run_when_a_later_hour_arrives(flagless: Deployment) -> None:
    for at, hour in enumerate(HOURS):
        land(flagless, hour, event(f"{10 + at}:05", f"/{at}"))
    outcome = flagless.run()
    assert (outcome.problems, pages(flagless)) == ([], ["/0", "/1"])
    assert [warning.partition(";")[0] for warning in outcome.warnings] == [
        f"visits: 1 hour is overdue, due 1 h after the end: {HOURS[2]} (data without _SUCCESS, and none that is later)"
    ]
    assert flagless.outstanding().runs == []
    # A late file changes the content of a complete hour.
    land(flagless, HOURS[0], event("10:15", "/late"), name="late.json")
    land(flagless, "2026-01-05T13", event("13:05", "/3"))
    assert flagless.run().problems == []
    assert pages(flagless) == ["/0", "/1", "/2", "/late"]
    assert flagless.problems() == []
    assert flagless.run().runs == 0
