from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from blogdata.contract.partitions import Grain, finer
from blogdata.ledger.events import EventLog
from blogdata.patterns.data_flow.unaligned_fan_in import PeriodSource, gather
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Scope
from blogdata.table.lake import Lake
from published import bronze, enriched, publish
from quality.contracts import GRAPH

DAY, NEXT = "2026-01-05", "2026-01-06"
HOURS = finer(DAY, Grain.DAY, Grain.HOUR)
REPORT = "gold.daily_report"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def delivered(lake: Lake, hours: Sequence[str]) -> dict[str, int]:
    read = bronze(lake, {hour: {hour: 1} for hour in hours})
    letters = publish(
        lake, "bronze.dead_letters", "arrival_hour", dict.fromkeys(hours, 0), inputs={"bronze.visits": read}
    )
    return {"silver.visits_enriched": enriched(lake, hours, read=0), "bronze.dead_letters": letters}


def reported(lake: Lake, day: str, inputs: dict[str, int]) -> None:
    publish(lake, REPORT, "event_date", {day: 6}, inputs=inputs)


def runs(lake: Lake, now: str, scope: Scope = Scope.READY) -> list[str]:
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(now).replace(tzinfo=timezone.utc))
        look = Snapshot(Path(lake.root).parent / "landing", EventLog(lake))
        return list(Planner(graph=GRAPH, look=look, scope=scope).stale(GRAPH.task_of(REPORT)))


def test_the_deadline_does_not_wait_for_missing_parts(lake: Lake) -> None:
    delivered(lake, HOURS[:20])
    assert runs(lake, f"{NEXT}T01:59:59") == []
    assert runs(lake, f"{NEXT}T02:00") == [DAY]
    assert runs(lake, f"{NEXT}T02:00", Scope.ENDED) == [DAY]


def test_all_parts_there_do_not_wait_for_the_deadline(lake: Lake) -> None:
    # Ads have never been delivered, so nothing waits for them.
    delivered(lake, HOURS)
    assert runs(lake, f"{NEXT}T00:10") == [DAY]
    publish(lake, "bronze.ads", "arrival_hour", {HOURS[0]: 1})
    publish(lake, "silver.ads", "display_hour", {HOURS[0]: 1})
    assert runs(lake, f"{NEXT}T00:10") == []


def test_a_missing_part_replaces_the_report_when_it_comes(lake: Lake) -> None:
    reported(lake, DAY, delivered(lake, HOURS[:20]))
    assert runs(lake, f"{NEXT}T02:00") == []
    delivered(lake, HOURS[20:21])
    assert runs(lake, f"{NEXT}T02:00") == [DAY], "one missing part of four is reason enough"
    # The same holds for the first delivery of a source.
    reported(lake, DAY, delivered(lake, HOURS[21:]))
    publish(lake, "silver.ads", "display_hour", {HOURS[0]: 1})
    assert runs(lake, f"{NEXT}T09:00") == [DAY]


def test_a_source_counts_from_its_first_delivery() -> None:
    sources = {
        "visits": PeriodSource(published=HOURS, delivered=HOURS),
        "ads": PeriodSource(published=(), delivered=(f"{NEXT}T05",)),
    }
    day, following = gather([DAY, NEXT], Grain.DAY, Grain.HOUR, sources).values()
    assert (set(day.parts), day.completeness) == ({"visits"}, 1.0)
    assert (set(following.parts), following.completeness, following.read) == ({"visits", "ads"}, 0.0, frozenset())
