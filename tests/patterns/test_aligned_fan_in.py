from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from blogdata.contract.partitions import Grain, finer
from blogdata.ledger.events import EventLog
from blogdata.patterns.data_flow.aligned_fan_in import completeness
from blogdata.patterns.data_flow.unaligned_fan_in import PeriodSource, gather
from blogdata.runs.accounts import not_taken_in
from blogdata.table.lake import Lake
from published import bronze, silver

DAY = "2026-01-05"
HOURS = finer(DAY, Grain.DAY, Grain.HOUR)


def test_an_hour_whose_own_delivery_is_held_is_not_there(tmp_path: Path) -> None:
    """Early rows that arrived with the hour before published it; they do not prove that its own delivery was read."""
    lake = Lake(root=str(tmp_path / "lake"))
    before, hour, after = HOURS[:3]

    def lacking() -> set[str]:
        return not_taken_in(EventLog(lake), "bronze.visits", "silver.visits", HOURS)

    read = bronze(lake, {before: {before: 10, hour: 1}})
    silver(lake, {before: 10, hour: 1}, read=read)
    assert lacking() == set(), "it is not delivered"
    held = bronze(lake, {hour: {hour: 5}}, dead={hour: 500})
    assert lacking() == {hour}
    bronze(lake, {after: {after: 10, hour: 1}})
    assert lacking() == {hour, after}
    silver(lake, {after: 10}, read=held + 1)
    assert lacking() == {hour}
    silver(lake, {hour: 7}, read=held + 1)
    assert lacking() == set(), "a person has accepted it"
    bronze(lake, {hour: {hour: 5}}, dead={hour: 900})
    assert lacking() == set(), "hours read earlier still count"


def test_the_report_does_not_count_a_held_hour() -> None:
    source = PeriodSource(published=HOURS, delivered=HOURS, held=HOURS[:2])
    assert gather([DAY], Grain.DAY, Grain.HOUR, {"visits": source})[DAY].parts["visits"].present == 22


@given(st.sets(st.sampled_from(HOURS)))
def test_present_and_missing_hours_make_the_day(published: set[str]) -> None:
    day = completeness([DAY], Grain.DAY, Grain.HOUR, published)[DAY]
    assert set(day.needed) == published | set(day.missing)
    assert day.present == len(published)
    assert day.complete == (published == set(HOURS))
