from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from assets.silver import log_visits
from blogdata.landing.lines import REPLAY_PREFIX

NINE = datetime(2026, 1, 5, 9, tzinfo=timezone.utc)
VIEWS = (
    "user_id string, event_time timestamp, visit_id string,"
    " arrival_hour string, source_file string, source_offset bigint"
)


@dataclass(frozen=True)
class View:
    """A page view, in minutes after nine, and its append position."""

    minute: int
    offset: int
    file: str = "visits/date=2026-01-05/hour=10/access-0123abcd-2026-01-05T11-00-00-000000000000.log"
    user: str = "a"
    hour: str = "2026-01-05T10"


def ids(spark: Any, views: Sequence[View]) -> dict[tuple[str, int], str]:
    rows = [(it.user, NINE + timedelta(minutes=it.minute), None, it.hour, it.file, it.offset) for it in views]
    nothing = spark.createDataFrame([], VIEWS)
    found = log_visits.with_visit_ids(spark.createDataFrame(rows, VIEWS), nothing, "k").collect()
    minutes = [(row["event_time"].astimezone(timezone.utc) - NINE) // timedelta(minutes=1) for row in found]
    return {(row["user_id"], minute): row["visit_id"] for row, minute in zip(found, minutes, strict=True)}


def test_figure_4_8_late_records_keep_the_id(spark: Any) -> None:
    """10:09 and 10:12 were there when the job stopped; 09:55 was appended before its restart."""
    before = ids(spark, [View(69, 0), View(72, 100)])
    after = ids(spark, [View(69, 0), View(72, 100), View(55, 200)])
    assert set(before.values()) == set(after.values())
    assert len(set(after.values())) == 1


def test_corrections_of_dead_letters_come_after_all_lines(spark: Any) -> None:
    corrected = View(55, 0, file=f"visits/date=2026-01-05/hour=09/{REPLAY_PREFIX}0123.log", hour="2026-01-05T09")
    assert set(ids(spark, [View(69, 0), corrected]).values()) == set(ids(spark, [View(69, 0)]).values())


def test_a_better_correction_keeps_the_id_of_its_visit(spark: Any) -> None:
    corrects = f"visits/date=2026-01-05/hour=10/{REPLAY_PREFIX}{'0' * 16}"
    named = (f"{corrects}{payload}.log" for payload in ("", f"-{'a' * 16}", f"-{'b' * 16}"))
    assert len({str(ids(spark, [View(60, 0, file=name)])) for name in named}) == 1


minutes = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 300)), min_size=1, max_size=12, unique=True)


def visits(views: Sequence[View]) -> list[list[View]]:
    """Compute visits in plain Python: a new one begins after 30 minutes of silence."""
    in_order = sorted(views, key=lambda view: (view.user, view.minute))
    grouped: list[list[View]] = []
    for before, view in zip([None, *in_order], in_order, strict=False):
        if before is None or before.user != view.user or view.minute - before.minute > 30:
            grouped.append([])
        grouped[-1].append(view)
    return grouped


@hypothesis(max_examples=6, deadline=None)
@given(appended=minutes, data=st.data())
def test_visit_ids_never_change_however_runs_are_split(
    spark: Any, appended: list[tuple[str, int]], data: st.DataObject
) -> None:
    views = [View(minute, number, user=user) for number, (user, minute) in enumerate(appended)]
    stops = sorted(data.draw(st.sets(st.integers(1, len(views)), max_size=2)) | {len(views)})
    known: dict[tuple[str, int], str] = {}
    first: dict[tuple[str, int], str] = {}
    for stop in stops:
        known = ids(spark, views[:stop])
        for view in views[:stop]:
            first.setdefault((view.user, view.minute), known[view.user, view.minute])
    for visit in visits(views):
        (visit_id,) = {known[view.user, view.minute] for view in visit}
        oldest = min(visit, key=lambda view: view.offset)
        assert visit_id == first[oldest.user, oldest.minute], "the id of its first appended line since its first run"
    assert len({*known.values()}) == len(visits(views))
