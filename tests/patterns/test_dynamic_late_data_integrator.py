from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from blogdata.contract.publication import Entry
from blogdata.patterns.error_management.dynamic_late_data_integrator import state
from toy import entry

SOURCE = "bronze.visits"
H0, H1, H2 = "2026-01-05T00", "2026-01-05T01", "2026-01-05T02"


def arrival(key: str, version: int, rows: Mapping[str | None, int]) -> Entry:
    hours = {(hour,): count for hour, count in rows.items()}
    return entry(SOURCE, key, version, sum(rows.values()), breakdowns={"event_hours": hours})


def integrated(key: str, rows: int, read: int) -> Entry:
    return entry("silver.visits", key, rows=rows, inputs={SOURCE: read})


def stale(arrivals: Mapping[str, Entry], done: Mapping[str, Entry]) -> list[str]:
    lines = state(arrivals, done, source=SOURCE, breakdown="event_hours")
    return [key for key, line in lines.items() if line.behind]


def test_table_3_4_tells_processed_from_updated_partitions() -> None:
    """The book's table has times where Delta has versions: 12-17 was updated and then processed, 12-18 the reverse."""
    settled, late = "2024-12-17", "2024-12-18"
    arrivals = {settled: arrival(settled, 3, {settled: 5}), late: arrival(late, 20, {late: 7})}
    done = {settled: integrated(settled, 5, read=10), late: integrated(late, 6, read=9)}
    table = state(arrivals, done, source=SOURCE, breakdown="event_hours")
    assert [(line.partition, line.processed, line.updated, line.behind) for line in table.values()] == [
        (settled, 10, 3, False),
        (late, 9, 20, True),
    ]


def test_a_run_begun_before_an_arrival_missed_it() -> None:
    """It ends later than the arrival, so comparing times would call the hour integrated."""
    arrivals = {H0: arrival(H0, 1, {H0: 5}), H1: arrival(H1, 2, {H1: 1, H0: 0})}
    assert stale(arrivals, {H0: integrated(H0, 5, read=1), H1: integrated(H1, 1, read=2)}) == [H0]


def test_vanished_source_rows_put_their_hour_behind() -> None:
    """The arrival was published again without its late row: no newer version contains the old hour."""
    arrivals = {H0: arrival(H0, 1, {H0: 5}), H1: arrival(H1, 3, {H1: 4})}
    done = {H0: integrated(H0, 6, read=2), H1: integrated(H1, 4, read=3)}
    assert stale(arrivals, done) == [H0]


@given(st.lists(st.dictionaries(st.sampled_from([H0, H1, H2]), st.integers(1, 9)), min_size=1, max_size=6))
def test_integrating_stale_hours_leaves_none_stale(deliveries: list[dict[str | None, int]]) -> None:
    arrivals = {f"2026-01-06T{at:02}": arrival(f"2026-01-06T{at:02}", at, rows) for at, rows in enumerate(deliveries)}
    newest, before = len(deliveries) - 1, state(arrivals, {}, source=SOURCE, breakdown="event_hours")
    done = {key: integrated(key, before[key].rows, read=newest) for key in stale(arrivals, {})}
    assert {key for rows in deliveries for key in rows} <= set(done)
    assert stale(arrivals, done) == []
