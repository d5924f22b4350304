"""Visitors who come back in a later week, from the sketches of the hours."""

from dataclasses import replace
from datetime import timedelta

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schema import Audit, Column, RowRule
from blogdata.contract.watch import Lag, Watch
from blogdata.planning.reaches import Ended
from quality.contracts import columns as c
from quality.contracts.audience import ALL, LG_K, VISITORS

WEEKS = 12
ERROR = f"{1.04 / 2 ** (LG_K / 2)}D"
"""The relative standard error of an estimate."""
OWN_WEEK = "cohort_week = event_week"

VIEW = f"""\
WITH hours AS (
  SELECT date(date_trunc('week', to_date(left(event_hour, 10)))) AS week, events, visitors
  FROM gold.audience_hourly
  WHERE dimension = '{ALL}'
), ended AS (
  -- In one order: estimates of equal visitors could differ by a little if their sketches are merged in another.
  SELECT string(week) AS week, sum(events) AS events, array_sort(collect_list(visitors)) AS sketches
  FROM hours
  WHERE week < (SELECT max(week) FROM hours) AND week >= date_sub((SELECT max(week) FROM hours), {WEEKS * 7})
  GROUP BY week
), weeks AS (
  SELECT week, events, aggregate(slice(sketches, 2, size(sketches)), sketches[0], (a, b) -> hll_union(a, b)) AS visitors
  FROM ended
), pairs AS (
  SELECT
    cohort.week AS cohort_week,
    later.week AS event_week,
    hll_sketch_estimate(cohort.visitors) AS cohort_visitors,
    hll_sketch_estimate(later.visitors) AS week_visitors,
    hll_sketch_estimate(hll_union(cohort.visitors, later.visitors)) AS either,
    later.events,
    later.visitors
  FROM weeks AS cohort JOIN weeks AS later ON cohort.week <= later.week
)
SELECT
  cohort_week,
  event_week,
  cohort_visitors,
  week_visitors,
  if({OWN_WEEK}, week_visitors,
     greatest(0, least(cohort_visitors, week_visitors, cohort_visitors + week_visitors - either))) AS returning,
  {ERROR} * if({OWN_WEEK}, week_visitors,
     sqrt(pow(cohort_visitors, 2) + pow(week_visitors, 2) + pow(either, 2))) AS standard_error,
  if({OWN_WEEK}, events, NULL) AS events,
  if({OWN_WEEK}, visitors, NULL) AS visitors
FROM pairs"""

RETURNING_VISITORS = Contract(
    dataset="gold.returning_visitors",
    description=f"How many visitors of a week came back in a later one: each pair of the last {WEEKS} weeks that have "
    "ended and had visitors, and each week by itself",
    owner="team:analytics",
    consumers=("team:editors",),
    reads=(Read("gold.audience_hourly", Ended(weeks=WEEKS, newest="newest_week")),),
    view=VIEW,
    columns=(
        c.text("cohort_week", "Week of the visitors, as its Monday"),
        c.text("event_week", "Week in which they came back, as its Monday; `cohort_week` itself for a week by itself"),
        c.count("cohort_visitors", "Visitors of `cohort_week`"),
        c.count("week_visitors", "Visitors of `event_week`"),
        c.count("returning", "Visitors of both weeks: those of one and those of the other, less those of either"),
        c.measure(
            "standard_error",
            "Standard error of `returning`, in visitors, at most: the three estimates err independently",
        ),
        Column("events", "Page views of a week by itself; null for a pair", type="BIGINT"),
        replace(VISITORS, nullable=True, description=f"{VISITORS.description} of a week by itself; null for a pair"),
    ),
    key=("cohort_week", "event_week"),
    rules=(
        RowRule("in_order", "cohort_week <= event_week", "Nobody comes back before"),
        RowRule(
            "returning_are_visitors",
            "returning BETWEEN 0 AND least(cohort_visitors, week_visitors) AND standard_error >= 0",
            "Those who come back are visitors of both weeks",
        ),
        RowRule(
            "weeks_by_themselves",
            f"({OWN_WEEK}) = (events IS NOT NULL AND coalesce(hll_sketch_estimate(visitors), 0) >= 1)",
            "A week by itself has page views and a readable sketch of its visitors; a pair has none",
        ),
    ),
    audits=(
        Audit(
            "every_pair",
            f"count(1) = count_if({OWN_WEEK}) * (count_if({OWN_WEEK}) + 1) / 2",
            "Each week is paired with each later one",
        ),
    ),
    rows_in=f"page views of the last {WEEKS} weeks that have ended, by `gold.audience_hourly`",
    stands_for="sum(events)",
    reasons={"aggregated": "sum(events) - count(1)"},
    left_out={"aggregated": "the page views less the rows; below zero if these are more"},
    measures={"newest_week": "max(event_week)"},
    patterns=("Dataset Materializer", "Data Overwrite", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=Lag(within=timedelta(hours=12))),
)
