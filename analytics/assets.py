"""The team's assets; each compares the gold table that it reads with what it relies on before it reads it."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from statistics import fmean
from typing import Any

import dagster as dg
import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from analytics import gold
from analytics.gold import DAILY_REPORT, PAGE_STATS, FoldersResource, Upstream

OWNER = "team:analytics"
VIEWS_FORECAST = dg.AssetKey(["analytics", "views_forecast"])
NEWSLETTER = dg.AssetKey(["analytics", "newsletter"])
RECENT_DAYS = 7
SCHEMA = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("views", pa.float64()), pa.field("actual", pa.int64())]
)
POSTS = 10
Rows = Sequence[Mapping[str, Any]]
"""Rows of gold.page_stats: `event_date`, `page`, `events` and `hours_present`."""


def key_of(upstream: Upstream) -> dg.AssetKey:
    """Return the key of a gold table in the platform's code location."""
    return dg.AssetKey(["gold", upstream.name])


@dg.asset(
    key=VIEWS_FORECAST,
    deps=[key_of(DAILY_REPORT)],
    owners=[OWNER],
    group_name="analytics",
    kinds={"deltalake"},
    tags={"pattern/isolated-sequencer": ""},
    description="The expected page views of tomorrow and, beside actual ones, of the days before; from complete days",
    # Two runs at once would overwrite one another, and the one that has read an older report might be the last.
    pool="analytics_views_forecast",
)
def views_forecast(places: FoldersResource) -> dg.MaterializeResult[None]:
    """Compute all forecasts from the newest report, and replace the table in one commit."""
    table = gold.opened(places.gold_folder, DAILY_REPORT)
    rows = gold.select(table, "SELECT event_date, value, completeness FROM t WHERE metric = 'views'")
    whole = {row["event_date"]: row["value"] if row["completeness"] >= 1 else None for row in rows}
    expected = forecasts(whole)
    write_deltalake(
        places.own_folder / "views_forecast",
        pa.Table.from_pylist(expected, schema=SCHEMA),
        mode="overwrite",
        schema_mode="overwrite",
        commit_properties=CommitProperties(custom_metadata={DAILY_REPORT.dataset: str(table.version())}),
    )
    tomorrow = {f"forecast/{row['day']}": row["views"] for row in expected[-1:] if row["views"]}
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(expected),
            f"{DAILY_REPORT.dataset} version": table.version(),
            "incomplete_days": sum(views is None for views in whole.values()),
            **tomorrow,
        }
    )


def forecasts(whole: Mapping[str, int | None]) -> list[dict[str, Any]]:
    """Forecast the day after each reported one: the mean of the seven days before, without incomplete ones (None)."""
    rows: list[dict[str, Any]] = []
    for day in sorted(whole):
        after = date.fromisoformat(day) + timedelta(days=1)
        before = (whole.get(str(after - timedelta(days=ago))) for ago in range(1, RECENT_DAYS + 1))
        used = [views for views in before if views is not None]
        rows.append({"day": str(after), "views": fmean(used) if used else None, "actual": whole.get(str(after))})
    return rows


def weekly_newsletter(weeks: dg.WeeklyPartitionsDefinition) -> dg.AssetsDefinition:
    # Marked beta; a backfill takes a week whose days are not all partitions of the platform yet.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        days_there = dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)

    @dg.asset(
        key=NEWSLETTER,
        deps=[dg.AssetDep(key_of(PAGE_STATS), partition_mapping=days_there)],
        partitions_def=weeks,
        owners=[OWNER],
        group_name="analytics",
        kinds={"markdown"},
        tags={"pattern/isolated-sequencer": ""},
        description="The most read posts of a week, as Markdown; the platform calls for it when the days are there",
    )
    def written(context: dg.AssetExecutionContext, places: FoldersResource) -> dg.MaterializeResult[None]:
        """Write the newsletter of a week; written again, it replaces the file."""
        week = context.partition_key
        table = gold.opened(places.gold_folder, PAGE_STATS)
        days = ", ".join(f"'{day}'" for day in days_of(week))
        rows = gold.select(table, f"SELECT event_date, page, events, hours_present FROM t WHERE event_date IN ({days})")
        text = newsletter_of(week, rows)
        target = places.own_folder / "newsletter" / f"{week}.md"
        gold.write_whole(target, text)
        return dg.MaterializeResult(
            metadata={
                "newsletter": dg.MetadataValue.md(text),
                "file": dg.MetadataValue.path(str(target)),
                "incomplete_days": len(incomplete(week, rows)),
                f"{PAGE_STATS.dataset} version": table.version(),
            }
        )

    return written


def weeks_since(day: str | None) -> dg.WeeklyPartitionsDefinition:
    """Define a partition for each week, by its Monday, from the week of a day on; None: from this week."""
    first = date.fromisoformat(day) if day else datetime.now(timezone.utc).date()
    monday = first - timedelta(days=first.weekday())
    return dg.WeeklyPartitionsDefinition(start_date=monday.isoformat(), day_offset=1)


def days_of(week: str) -> list[str]:
    return [(date.fromisoformat(week) + timedelta(days=ahead)).isoformat() for ahead in range(7)]


def newsletter_of(week: str, rows: Rows) -> str:
    """Write the newsletter of a week as Markdown; it names the days that are missing or not complete."""
    views = Counter[str]()
    for row in rows:
        views[row["page"]] += row["events"]
    top = sorted(views.items(), key=lambda item: (-item[1], item[0]))[:POSTS]
    lines = [f"# Most read, {week} to {days_of(week)[-1]}", ""]
    if missing := incomplete(week, rows):
        lines += [f"Figures are too small: {'; '.join(missing)}.", ""]
    lines += ["| | post | page views |", "|---|---|---:|"]
    lines += [f"| {place} | {_cell(page)} | {count:,} |" for place, (page, count) in enumerate(top, 1)]
    return "\n".join([*lines, ""])


def incomplete(week: str, rows: Rows) -> list[str]:
    """Name the days of a week that are missing or lack hours."""
    hours = {row["event_date"]: row["hours_present"] for row in rows}
    days = [day for day in days_of(week) if hours.get(day) != 24]
    return [f"{day} has {hours[day]} of 24 hours" if day in hours else f"{day} is missing" for day in days]


def _cell(page: str) -> str:
    return page.replace("\\", "\\\\").replace("|", "\\|").replace("\r", " ").replace("\n", " ")
