"""Readiness Marker: overdue data or flags are reported once, and the check fails until they arrive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import dagster as dg
import pytest

from assets.checks import overdue_check_key
from blogdata.evidence.events import EventLog
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.planning.arrivals import Arrivals
from published import land
from quality.contracts import CONTRACTS
from sensors import detectors

overdue_arrivals = detectors.overdue_arrivals()
NOW = datetime(2026, 1, 5, 12, 30, tzinfo=timezone.utc)
H = [f"2026-01-05T{hour:02d}" for hour in range(24)]
VISITS = overdue_check_key(CONTRACTS["bronze.visits"])
Shown = Callable[[], dg.AssetCheckEvaluation]


@pytest.fixture(autouse=True)
def present(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the time to half past twelve."""
    monkeypatch.setattr("sensors.detectors._now", lambda: NOW)


@pytest.fixture
def ticked(tick: Any, instance: dg.DagsterInstance) -> Callable[..., Any]:
    """Run one tick and store its evaluations as the daemon does."""

    def evaluate() -> Any:
        data = tick(overdue_arrivals)
        for event in data.asset_events:
            instance.report_runless_asset_event(event)
        return data

    return evaluate


@pytest.fixture
def shown(instance: dg.DagsterInstance) -> Shown:
    """Return the check on visits as Dagster's pages show it."""

    def newest() -> dg.AssetCheckEvaluation:
        record = instance.get_latest_asset_check_evaluation_record(VISITS)
        assert record is not None
        assert record.evaluation is not None
        return record.evaluation

    return newest


def due(lake: LakeResource, dataset: str = "bronze.visits", now: datetime = NOW) -> dict[str, list[str]]:
    found = Arrivals.of(CONTRACTS[dataset], lake.landing_zone).overdue(EventLog(lake.lake), now)
    return {why: list(keys) for why, keys in found.without.items()}


def test_a_missing_flag_warns_once_until_it_comes(
    lake: LakeResource, ticked: Any, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    land(lake, "visits", H[10], {"a.json": "{}\n"}, flag=False)
    land(lake, "visits", H[11], {"a.json": "{}\n"}, flag=False)
    ticked()
    told = f"visits: 1 hour is overdue, due 1 h after the end: {H[10]} (data without _SUCCESS)"
    assert told in capsys.readouterr().err
    assert (shown().passed, shown().severity) == (False, dg.AssetCheckSeverity.WARN)
    assert told in (shown().description or "")
    assert shown().metadata["flag"].value == [H[10]]
    assert ticked().asset_events == []
    assert "overdue" not in capsys.readouterr().err
    land(lake, "visits", H[10], {})
    ticked()
    assert "visits: nothing is overdue any more" in capsys.readouterr().err
    assert (shown().passed, shown().description) == (True, None)
    assert ticked().skip_message == "nothing is overdue"
    assert "overdue" not in capsys.readouterr().err


def test_a_changed_overdue_set_is_reported_again(
    lake: LakeResource, ticked: Any, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    land(lake, "visits", H[6], {"a.json": "{}\n"}, flag=False)
    ticked()
    capsys.readouterr()
    land(lake, "visits", H[9], {"a.json": "{}\n"})
    ticked()
    assert (
        f"{H[6]} (data without _SUCCESS), {H[7]}..{H[8]} (not there, though a later one is)" in capsys.readouterr().err
    )
    assert shown().metadata["overdue"].value == 3


def test_an_hour_with_a_refused_link_is_overdue(lake: LakeResource) -> None:
    (land(lake, "visits", H[3], {"a.json": "{}\n"}) / "b.json").symlink_to("/etc/passwd")
    (lake.landing_path / "visits" / "date=2026-01-06").symlink_to("/etc")
    assert due(lake) == {"link": [H[3], "2026-01-06"]}


def test_the_newest_flagless_hour_becomes_overdue(lake: LakeResource) -> None:
    flagless = LakeResource(root=lake.root, landing=lake.landing, ready="next_exists")
    for hour in (H[3], H[4]):
        land(lake, "visits", hour, {"a.json": "{}\n"}, flag=False)
    # The hour before is still being written, and will complete itself.
    assert due(flagless) == {"successor": [H[4]]}
