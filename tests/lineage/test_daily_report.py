"""The daily report appears at its deadline from the available parts, states their number, and is replaced later.

Pattern: Unaligned Fan-In.
"""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timezone

import pytest

from blogdata.cli.outcome import Outcome
from blogdata.orchestration.completeness import complete_results
from blogdata.orchestration.names import asset_key
from blogdata.publish.partitions import Grain, finer
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import CONTRACTS

pytestmark = pytest.mark.campaign
DAY, SILENT, LAST = "2026-01-05", "2026-01-06", "2026-01-07"
REPORT = "gold.daily_report"
TORN = "2026-01-05T04"
HOURS = finer(DAY, Grain.DAY, Grain.HOUR)


def display(hour: str) -> bytes:
    shown = {"ad_id": "ad-1", "page": "/", "visit_id": "v", "display_time": f"{hour}:10:00Z", "campaign": "c"}
    return json.dumps(shown).encode()


def view(hour: str, page: str) -> bytes:
    return event("", page, event_time=f"{hour}:05:00Z")


def run(deployment: Deployment) -> Outcome:
    """Compute the report and its inputs; the rest of gold has its own tests."""
    return deployment.run(for_=[REPORT])


@pytest.fixture(scope="module")
def partial(deploy: Deploy) -> Deployment:
    """A day whose last visits and most of whose ads are missing, a day without anything, and a complete beginning."""
    deployment = deploy("report")
    for hour in HOURS[:22]:
        deployment.land(hour, [view(hour, "/a"), view(hour, "/b"), b"broken"])
    deployment.land(HOURS[3], [display(HOURS[3]), display(HOURS[3]), b"{}"], name="ads.json", table="ads")
    deployment.land(f"{LAST}T00", [view(f"{LAST}T00", "/c")])
    # A branch that fails: the report does not wait for its repair.
    deployment.land(TORN, [gzip.compress(b"torn")[:-8]], name="ads.json.gz", table="ads")
    assert "bronze.ads" in "\n".join(run(deployment).problems)
    return deployment


def report(deployment: Deployment, day: str) -> dict[str, tuple[int | None, str | None, int, float]]:
    rows = deployment.rows(
        REPORT, "event_date", "metric", "value", "detail", "hours_present", "completeness", "report_completeness"
    )
    found = {row[1]: row[2:6] for row in rows if row[0] == day}
    assert len({row[6] for row in rows if row[0] == day}) <= 1
    return found


def test_a_day_without_its_last_hours_appears(partial: Deployment) -> None:
    found = report(partial, DAY)
    share = 22 / 24
    assert found["views"] == (44, None, 22, share)
    assert found["dead_letters"] == (22, None, 22, share)
    assert found["ad_displays"] == (1, None, 1, 1 / 24)
    assert found["top_page"] == (22, "/a", 22, share)
    assert found["top_referrer"] == (44, "direct", 22, share)
    assert set(found) == {
        "views", "visits", "visitors", "top_page", "top_referrer", "dead_letters", "ad_displays"
    }  # fmt: skip
    entry = partial.published(REPORT)[DAY]
    assert (entry.measures["parts"], entry.measures["parts_expected"]) == (45, 72)
    assert float(entry.measures["completeness"]) == pytest.approx(45 / 72)
    assert entry.rows_in == 44 + 22 + 1
    assert partial.problems() == []


def test_a_silent_day_has_rows_without_values(partial: Deployment) -> None:
    found = report(partial, SILENT)
    assert len(found) == 7
    assert set(found.values()) == {(None, None, 0, 0.0)}
    # The ads' source has delivered before, so it counts as missing, not as absent.
    assert report(partial, LAST)["ad_displays"] == (None, None, 0, 0.0)


def test_the_check_names_the_incomplete_days(partial: Deployment) -> None:
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr("blogdata.planning.clock.now", lambda: datetime(2026, 1, 8, 3, tzinfo=timezone.utc))
        (check,) = complete_results(asset_key(REPORT), [CONTRACTS[REPORT]], partial.events)
    assert not check.passed
    assert check.metadata["by_period"].value == {DAY: "45 of 72", SILENT: "0 of 72"}


def test_the_rest_replaces_the_report(partial: Deployment) -> None:
    """Here the rest of the displays; the visits of the last hours are missing for good."""
    before = report(partial, DAY)
    (partial.folder(TORN, "ads") / "ads.json.gz").unlink()
    for hour in (*HOURS[:3], *HOURS[4:]):
        partial.land(hour, [display(hour)], name="ads.json", table="ads")
    assert run(partial).problems == []
    assert report(partial, DAY) == {**before, "ad_displays": (24, None, 24, 1.0)}
    entry = partial.published(REPORT)[DAY]
    assert (entry.measures["parts"], entry.measures["parts_expected"]) == (68, 72)
    assert REPORT not in partial.outstanding().wanted()
    assert partial.problems() == []
