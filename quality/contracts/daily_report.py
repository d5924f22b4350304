"""The daily report: what a blog's owner reads in the morning, due at two, from whatever is there by then."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import Audit, Column, RowRule
from blogdata.contract.watch import Lag, Sla, Watch
from blogdata.planning.reach import WITHIN
from quality.contracts import columns as c
from quality.contracts.page_views import DAY, HOURS_PRESENT

FIGURES: Mapping[str, Mapping[str, int | None]] = {
    "silver.visits_enriched": {"views": 0, "visits": 0, "visitors": 0, "top_page": None, "top_referrer": None},
    "bronze.dead_letters": {"dead_letters": 0},
    "silver.ads": {"ad_displays": 0},
}
"""Source to the figures counted from it, each with its value when the source is there and has no rows."""
COUNTS_ROWS = ("views", "dead_letters", "ad_displays")
"""The figure of each source that counts all of its rows."""
_COUNTING = f"metric IN ({', '.join(repr(name) for name in COUNTS_ROWS)})"
STANDS_FOR = f"sum(CASE WHEN {_COUNTING} THEN coalesce(value, 0) ELSE 0 END)"
PARTS = f"sum(CASE WHEN {_COUNTING} THEN hours_present ELSE 0 END)"
EXPECTED = f"24 * count_if({_COUNTING})"
LABEL = "from the keys and the accounts of the sources, by the program"
label, share = partial(c.text, sourceless=LABEL), partial(c.measure, sourceless=LABEL)

DAILY_REPORT = Contract(
    dataset="gold.daily_report",
    description="The figures of a day, one a row, from the sources that were there at its deadline; each row says how "
    "complete its source and the whole day are",
    owner="team:platform",
    consumers=("team:analytics",),
    reads=(
        Read("silver.visits_enriched", WITHIN, optional=True),
        Read("bronze.dead_letters", WITHIN, optional=True),
        Read("silver.ads", WITHIN, optional=True),
    ),
    runs=Runs(on=On.DEADLINE, at=Clock.NIGHTLY),
    columns=(
        replace(c.EVENT_DATE, sourceless=LABEL),
        label("metric", "views, visits, visitors, top_page, top_referrer, dead_letters or ad_displays"),
        Column(
            "value",
            "The figure, in the case of top_page its page views; null if nothing of its source is there",
            type="BIGINT",
        ),
        c.optional_text("detail", "The page of top_page, the host of top_referrer"),
        label("source", "Dataset the figure is counted from"),
        replace(
            HOURS_PRESENT,
            description="Hours of the source that were delivered when it was computed, with rows or without",
            sourceless=LABEL,
        ),
        share("completeness", "Share of the source's hours that were there, 0 to 1; below 1 the figure is too small"),
        share("report_completeness", "Share of the hours of all sources of the day that were there, 0 to 1"),
    ),
    key=("event_date", "metric"),
    partitioning=DAY,
    rules=(
        RowRule(
            "completeness_is_of_24_hours",
            "hours_present BETWEEN 0 AND 24 AND abs(completeness - hours_present / 24) < 0.000001",
            "The share is that of the hours",
        ),
        RowRule(
            "complete_has_a_value",
            "completeness < 1 OR value IS NOT NULL OR metric LIKE 'top_%'",
            "A figure whose source is complete has a value; a day without page views has no top page",
        ),
        RowRule("not_negative", "value IS NULL OR value >= 0", "Figures are counts"),
    ),
    audits=(
        Audit(
            "one_report",
            f"max(report_completeness) = min(report_completeness) "
            f"AND abs(max(report_completeness) - {PARTS} / ({EXPECTED})) < 0.000001",
            "All rows of a day state the same completeness of the report, that of its sources",
        ),
        Audit(
            "every_figure",
            " AND ".join(
                f"count_if(source = '{source}') IN (0, {len(figures)})" for source, figures in FIGURES.items()
            ),
            "A day has all figures of a source, or none of one that never delivers",
        ),
    ),
    rows_in="rows of the hours of the day, of all sources",
    stands_for=STANDS_FOR,
    reasons={"aggregated": f"{STANDS_FOR} - count(1)"},
    left_out={"aggregated": "the rows counted less the figures; below zero if these are more"},
    measures={"parts": PARTS, "completeness": "max(report_completeness)"},
    parts=24 * len(FIGURES),
    patterns=("Unaligned Fan-In", "Distributed Aggregator", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=3,
    watch=Watch(lag=Lag(), sla=Sla()),
)
