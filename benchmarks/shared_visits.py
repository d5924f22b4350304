"""(s) Shared visits: an attack on page views and on anonymous rows, their k and l by pyCANON, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pycanon import anonymity
from pyspark.sql import functions as F

from assets.transforms import cubes, shared_visits
from benchmarks import weekly_rows
from benchmarks.deployment import Bench
from benchmarks.linkage import Found, attack
from benchmarks.measure import Case, Peer, Result, Size, interleaved, ratio, say
from quality.contracts.visits_shared import PROMISED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STANDARD_VISITS = 200_000
SECRET = "benchmark" * 4
LOOKED_FOR = 2_000
"""Persons whom the attacker looks for."""
_KNOWN = [*PROMISED.alike]
_COARSE, _MINUTE = ["event_date", "part_of_day", "page", "browser"], ["minute", "page", "browser"]


def measure(bench: Bench, size: Size) -> Result:
    """Measure with about this many page views in a week."""
    visits = size.visits or STANDARD_VISITS
    say(f"a week of {visits:,} page views, {size.rounds} rounds")
    made = weekly_rows.enriched(bench, visits, weeks=1)
    rows = made.rows.localCheckpoint()

    def shared() -> DataFrame:
        return shared_visits.shared(shared_visits.grouped(rows), SECRET)

    def written(frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    seconds = interleaved(
        [
            Peer(name="anonymous rows", run=lambda _: written(shared())),
            Peer(name="the cube", run=lambda _: written(cubes.visits_cube(rows, "event_week"))),
        ],
        size.rounds,
        warm_ups=1,
    )
    persons = shared_visits.grouped(rows).localCheckpoint()
    table: Any = shared().toPandas()
    (left_out,) = shared_visits.left_out(rows, persons).values()
    facts = {
        "page views": {
            "simulated": rows.count(),
            "late": made.late,
            "shared": int(table["page_views"].sum()),
            **left_out,
        },
        "rows by pyCANON": {
            "rows": len(table),
            "k": anonymity.k_anonymity(table, _KNOWN),
            "l": anonymity.l_diversity(table, _KNOWN, [PROMISED.sensitive]),
        },
        "found by the attacker, of the persons looked for": _attacks(rows, table),
    }
    case = Case(
        name=f"{visits:,} page views",
        seconds=seconds,
        ratios=[ratio(seconds, "anonymous rows", "the cube")],
        facts=facts,
    )
    return Result(letter="s", title="Shared visits", cases=[case])


def _attacks(rows: DataFrame, table: Any) -> dict[str, dict[str, int]]:
    """Look for some persons of the page views who may be shared, by one page view of each."""
    told = rows.where("NOT keep_private").withColumns(
        {
            "event_date": F.substring("event_hour", 1, 10),
            "part_of_day": shared_visits.part_of_day(F.col("event_hour")),
            "section": shared_visits.section(F.col("page")),
            "browser": cubes.named(F.col("browser")),
            "country": cubes.named(F.col("country")),
            "came_from": F.col("referral_host"),
            "minute": F.date_trunc("minute", "event_time"),
        }
    )
    views = [
        row.asDict() for row in told.select("user_id", "visit_id", "page", "came_from", "minute", *_KNOWN).collect()
    ]
    first: dict[str, dict[str, Any]] = {}
    for view in sorted(views, key=lambda view: (view["user_id"], view["visit_id"], view["page"])):
        first.setdefault(view["user_id"], view)
    known = [*first.values()][:LOOKED_FOR]
    by = {"page views, by the part of the day": _COARSE, "page views, by the minute": _MINUTE}
    plain = {name: attack(known, views, by[name], candidate="visit_id", sensitive="came_from") for name in by}
    shared = attack(known, table.to_dict("records"), _KNOWN, candidate="visitor", sensitive="came_from")
    return {name: _said(found) for name, found in {**plain, "anonymous rows": shared}.items()}


def _said(found: Found) -> dict[str, int]:
    return {
        "persons looked for": found.persons,
        "one candidate left": found.one,
        "where they came from is told": found.told,
        "fewest candidates": found.least,
    }
