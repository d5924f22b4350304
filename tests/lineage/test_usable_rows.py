"""What bronze calls usable keeps every promise of every dataset below it.

One row that bronze lets through and a contract below refuses keeps its whole hour, and every later step of it, from
being published. So odd lines are judged by bronze, computed by the transforms of every dataset down to gold, and held
against the contracts by the audit that publishing makes. A dataset without its transform here fails the first test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.gold.fan_in import Period, keyed
from assets.silver import ads
from assets.silver.visits import ARRIVAL_ORDER, IDENTITY
from assets.transforms import (
    ad_displays,
    ad_visits,
    audience,
    campaigns,
    cubes,
    daily_report,
    places,
    sessions,
    visit_events,
    visits_by_inactivity,
    weekly_visits,
)
from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from assets.transforms.enrichment import enrich
from lineage import odd_lines
from patterns.data_flow import unaligned_fan_in
from patterns.data_flow.unaligned_fan_in import Source
from patterns.data_value import distributed_aggregator
from patterns.data_value.incremental_sessionizer import sessionize
from patterns.error_management import late_data_detector, windowed_deduplicator
from patterns.ingestion.landed_lines import is_replay
from patterns.quality.schema_migrator import both
from publish import audit, kept_rows
from publish.contract import Contract
from publish.partitions import Grain, coarser
from quality.contracts import EVERY
from quality.contracts.columns import AD_IDENTIFIERS, IDENTIFIERS
from quality.contracts.daily_report import FIGURES
from quality.contracts.gold import DAY
from quality.contracts.live import LATE
from services import spark_session
from services.answer_journal import AnswerJournal
from services.locations import EmbeddedTable
from services.spark_connect import SparkServer

DAYS = ("2026-01-30", "2026-01-31")
WATERMARK = datetime(2026, 1, 31, 5, 45, tzinfo=timezone.utc)
FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""To compile the many plans takes several times as long as to interpret them."""
ODD = (
    "visit_id = char(9)",
    "user_id = char(0)",
    "page = ''",
    "contains(page, char(0))",
    "length(page) > 10000",
    "length(referral_host) > 10000",
    "greatest(length(visit_id), length(user_id)) >= 10000",
    "event_time = '2000-01-01T00:00:00Z'",
    "event_time = '2026-01-31T06:05:00Z'",
    "contains(concat_ws('', browser, browser_version, network_type, device_type, device_version, ad_id), '?')",
    "keep_private AND ad_id IS NULL AND browser IS NULL",
)
"""What must come through to silver, or the lines are not odd enough; half a surrogate pair is a question mark there."""
LINES = "raw BINARY, source_file STRING, source_offset BIGINT"


@dataclass
class Computed:
    """Every dataset as its transforms compute it from the odd lines, each once."""

    spark: Any
    kept: ExitStack
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def __getitem__(self, dataset: str) -> DataFrame:
        """Compute a dataset with the columns of its contract."""
        names = [column.name for column in EVERY[dataset].columns]
        return self.once(dataset, lambda at: both(TRANSFORMS[dataset](at), EVERY[dataset]).select(*names))

    def once(self, name: str, compute: Callable[[Computed], DataFrame]) -> DataFrame:
        """Compute something once, and keep it without its plan: every reader would plan all of it again."""
        if name not in self.frames:
            self.frames[name] = self.kept.enter_context(kept_rows.computed(compute(self)))
        return self.frames[name]

    @property
    def events(self) -> DataFrame:
        """The usable rows of bronze.visits, parsed."""
        return self.once("events", _events)

    @property
    def streamed(self) -> DataFrame:
        """The events of the stream, each with what a micro-batch says of it."""
        return self.once("streamed", _streamed)

    def lines(self, partition: str, files: dict[tuple[str, str], list[bytes]]) -> DataFrame:
        """Give lines with their files and partitions, each at its own place."""
        rows = [(raw, name, at, key) for (key, name), lines in files.items() for at, raw in enumerate(lines)]
        return self.spark.createDataFrame(rows, f"{LINES}, {partition} STRING")


def _landed(at: Computed) -> DataFrame:
    events = [*odd_lines.each_oddity(), *odd_lines.drawn(odd_lines.events(), 400)]
    files = {
        (odd_lines.ARRIVALS[0], "a.json"): events[::2],
        (odd_lines.ARRIVALS[1], "b.json"): events[1::2],
        (odd_lines.ARRIVALS[1], "visits/replay-1.json"): events[-40:],
        (odd_lines.ARRIVALS[0], "a.log"): odd_lines.drawn(odd_lines.requests(), 100),
    }
    named = F.when(F.col("source_file").endswith(".log"), visit_events.COMBINED).otherwise(visit_events.JSON)
    return at.lines("arrival_hour", files).withColumn("format", named)


def _events(at: Computed) -> DataFrame:
    rows, is_log = at["bronze.visits"], F.col("format") == visit_events.COMBINED
    logs = visit_events.parse(rows.where(is_log), frozenset({visit_events.COMBINED}), "key")
    logs = visits_by_inactivity.with_visit_ids(logs, logs.limit(0), "key")
    events = visit_events.parse(rows.where(~is_log), frozenset({visit_events.JSON})).unionByName(logs)
    return events.withColumn("_replay", is_replay())


def _streamed(at: Computed) -> DataFrame:
    late = late_data_detector.is_late(F.col("event_time"), WATERMARK) & ~F.col("_replay")
    events = at.events.where(F.col("format") == visit_events.JSON)
    held = windowed_deduplicator.first_come(
        events.where(~late), events.limit(0), key=IDENTITY, order=ARRIVAL_ORDER, payload=F.xxhash64("raw")
    )
    told = held.unionByName(events.where(late).withColumn("verdict", F.lit(LATE)))
    return told.withColumns({"batch": F.lit("one/0"), "watermark": F.lit(WATERMARK), "reason": F.col("verdict")})


def _delivered(at: Computed, judge: Callable[[DataFrame], DataFrame], suffix: str, *days: list[bytes]) -> DataFrame:
    files = {(day, f"{day}.{suffix}"): lines for day, lines in zip(DAYS, days, strict=False)}
    return judge(at.lines("load_date", files))


def _users(at: Computed) -> DataFrame:
    lines = odd_lines.drawn(odd_lines.users(), 200)
    return _delivered(at, user_rules.judge, "json", lines[:100], lines[100:])


def _devices(at: Computed) -> DataFrame:
    header, lines = b"type;full_name;version", odd_lines.drawn(odd_lines.devices(), 100)
    return _delivered(at, device_rules.judge, "csv", [header, *lines[:60]], [header, *lines[40:]])


def _ads(at: Computed) -> DataFrame:
    lines = [*odd_lines.each_odd_display(), *odd_lines.drawn(odd_lines.displays(), 200)]
    files = {(hour, f"{hour}.json"): lines[number::2] for number, hour in enumerate(odd_lines.ARRIVALS)}
    return ad_displays.judge(at.lines("arrival_hour", files))


def _day_by_day(dataset: str, above: str, merge: Callable[[DataFrame, DataFrame, str], DataFrame]) -> Any:
    def computed(at: Computed) -> DataFrame:
        rows = at.spark.createDataFrame([], EVERY[dataset].ddl)
        for day in DAYS:
            rows = merge(at[above].where(F.col("load_date") == day), rows, day)
        return rows

    return computed


def _period(dataset: str, transform: Callable[[DataFrame], DataFrame]) -> Callable[[Computed], DataFrame]:
    partitioning = EVERY[dataset].partitioning
    assert partitioning is not None

    def computed(at: Computed) -> DataFrame:
        visits = keyed(at["silver.visits_enriched"], partitioning)
        hours = [row[0] for row in at["silver.visits_enriched"].select("event_hour").distinct().collect()]
        present = Counter(coarser(hour, Grain.HOUR, partitioning.grain) for hour in hours)
        period = Period(visits=visits, accounts={}, column=partitioning.column, hours=present)
        return period.with_hours(transform(visits))

    return computed


def _report(at: Computed) -> DataFrame:
    sources, there = {}, {}
    for name in FIGURES:
        column = EVERY[name].partition_column
        assert column is not None
        hours = [row[0] for row in at[name].select(column).distinct().collect()]
        there[name] = Source(published=hours, delivered=hours)
        sources[name] = at[name].withColumn("period", F.substring(column, 1, 10))
    days = sorted({hour[:10] for source in there.values() for hour in source.published})
    gathered = unaligned_fan_in.gather(days, Grain.DAY, Grain.HOUR, there)
    return daily_report.report(at.spark, sources, gathered)


def _campaigns(at: Computed) -> DataFrame:
    day = F.substring("display_hour", 1, 10)
    joined = keyed(at["silver.visits_with_ads"], DAY)
    counted = campaigns.campaign_stats(joined, at["silver.ads"].withColumn("event_date", day))
    return counted.withColumn("hours_present", F.lit(24))


def _sessions(at: Computed) -> DataFrame:
    hours = [row[0] for row in at["silver.visits"].select("event_hour").distinct().collect()]
    return sessionize(sessions.page_views(at["silver.visits"]), None, sessions.SPEC, partitions=hours)


def _deduplicated(how: Callable[..., DataFrame]) -> Callable[[Computed], DataFrame]:
    key = ("event_hour", *IDENTITY)
    return lambda at: how(at.events, key=key, order=ARRIVAL_ORDER, payload=F.xxhash64("raw"))


def _places(at: Computed) -> DataFrame:
    ddl = EVERY["silver.places"].ddl
    asked = places.questions(at["silver.visits"], at.spark.createDataFrame([], ddl), disclosed=False)
    journal = AnswerJournal(path=Path("answers.jsonl"))
    return at.spark.createDataFrame(places.answers(asked, EmbeddedTable(), journal, datetime.now(timezone.utc)), ddl)


TRANSFORMS: dict[str, Callable[[Computed], DataFrame]] = {
    "bronze.visits": lambda at: visit_events.judge(_landed(at)),
    "bronze.dead_letters": lambda at: (
        at["bronze.visits"].where(F.size("reasons") > 0).withColumn("replay", is_replay())
    ),
    "bronze.users": _users,
    "bronze.devices": _devices,
    "bronze.ads": _ads,
    "bronze.ad_dead_letters": lambda at: at["bronze.ads"].where(F.size("reasons") > 0),
    "bronze.visits_live": lambda at: (
        at["bronze.visits"].where(F.col("format") == visit_events.JSON).withColumn("batch", F.lit("one/0"))
    ),
    "silver.visits": _deduplicated(windowed_deduplicator.deduplicate),
    "silver.visit_conflicts": _deduplicated(windowed_deduplicator.conflicting),
    "silver.late_visits": lambda at: late_data_detector.late(
        at["bronze.visits"].where(F.col("event_time").isNotNull() & F.col("filtered_by").isNull()),
        {odd_lines.ARRIVALS[1]: WATERMARK},
        partition="arrival_hour",
        event_time="event_time",
    ),
    "silver.users": lambda at: user_rules.history(at["bronze.users"]),
    "silver.users_current": _day_by_day("silver.users_current", "bronze.users", user_rules.newest),
    "silver.devices": _day_by_day("silver.devices", "bronze.devices", device_rules.versions),
    "silver.places": _places,
    "silver.visits_enriched": lambda at: enrich(
        at["silver.visits"], users=at["silver.users"], devices=at["silver.devices"], places=at["silver.places"]
    ),
    "silver.ads": lambda at: ads.each_once(ad_displays.parse(at["bronze.ads"])),
    "silver.ad_conflicts": lambda at: ads.conflicting(ad_displays.parse(at["bronze.ads"])),
    "silver.visits_with_ads": lambda at: ad_visits.with_ads(
        ad_visits.naming_an_ad(at["silver.visits"]), ad_visits.displays_of(at["silver.ads"])
    ),
    "silver.visits_enriched_live": lambda at: at["silver.visits_enriched"].withColumn("batch", F.lit("one/0")),
    "silver.visits_with_ads_live": lambda at: at["silver.visits_with_ads"].withColumn("batch", F.lit("one/0")),
    "silver.visits_live": lambda at: at.streamed.where(F.col("verdict") == "first"),
    "silver.visits_live_aside": lambda at: at.streamed.where(F.col("verdict") != "first"),
    "gold.visits_cube_daily": _period("gold.visits_cube_daily", lambda rows: cubes.visits_cube(rows, "event_date")),
    "gold.visits_cube_weekly": _period("gold.visits_cube_weekly", lambda rows: cubes.visits_cube(rows, "event_week")),
    "gold.visits_weekly": _period("gold.visits_weekly", weekly_visits.for_analysts),
    "gold.page_stats": _period("gold.page_stats", cubes.page_stats),
    "gold.referral_stats": _period("gold.referral_stats", cubes.referral_stats),
    "gold.audience_hourly": lambda at: distributed_aggregator.aggregate(
        at["silver.visits_enriched"].select("*", audience.dimensions()), audience.BY, audience.MEASURES
    ),
    "gold.campaign_audience_hourly": lambda at: distributed_aggregator.aggregate(
        at["silver.visits_with_ads"].select("*", *campaigns.audience_columns()),
        campaigns.AUDIENCE_BY,
        campaigns.AUDIENCE,
    ).withColumnRenamed("campaign_of_display", "campaign"),
    "silver.sessions": _sessions,
    "silver.sessions_live": lambda at: _sessions(at).where("is_completed").withColumn("batch", F.lit("one/0")),
    "silver.sessions_pending": lambda at: _sessions(at).where("NOT is_completed"),
    "gold.sessions_daily": lambda at: sessions.daily(
        keyed(at["silver.sessions"].where("is_completed"), DAY)
    ).withColumn("hours_present", F.lit(24)),
    "gold.daily_report": _report,
    "gold.campaign_stats": _campaigns,
}


@pytest.fixture(scope="module")
def computed(spark_server: SparkServer) -> Iterator[Computed]:
    session = spark_session.attach(spark_server.url)
    for setting, value in FOR_FEW_ROWS.items():
        session.conf.set(setting, value)
    with ExitStack() as kept:
        yield Computed(spark=session, kept=kept)
    spark_session.release(session)


def broken(contract: Contract, rows: DataFrame) -> dict[str, Any]:
    """Hold rows against a contract as publishing does; name each broken promise with how many rows break it."""
    spec = replace(audit.specify(contract, [], {}, {}), breakdowns={})
    found = audit.judge(rows, spec).violations
    return {f"{one.rule} {one.partition}": one.found for one in found if one.rule != "partition_is_declared"}


def test_every_dataset_has_its_transform_listed_here() -> None:
    assert TRANSFORMS.keys() == EVERY.keys(), "add the transforms of a new dataset to TRANSFORMS"


@pytest.mark.campaign
def test_odd_lines_are_usable_unless_identifiers_are_blank(computed: Computed) -> None:
    rows = computed["bronze.visits"].select("format", "filtered_by", "reasons").collect()
    usable = Counter(row.format for row in rows if not row.reasons and not row.filtered_by)
    assert usable[visit_events.JSON] > 300
    assert usable[visit_events.COMBINED] > 30
    reasons = Counter(reason for row in rows for reason in row.reasons)
    assert min(reasons[f"missing_field:{name}"] for name in IDENTIFIERS) > 10
    displays = [row.reasons for row in computed["bronze.ads"].select("reasons").collect()]
    assert sum(not reasons for reasons in displays) > 100
    reasons = Counter(reason for each in displays for reason in each)
    assert min(reasons[f"missing_field:{name}"] for name in AD_IDENTIFIERS) > 5
    visits = computed["silver.visits_enriched"]
    assert [odd for odd in ODD if visits.where(odd).isEmpty()] == []


def test_usable_bronze_rows_satisfy_every_downstream_contract(computed: Computed) -> None:
    faults = {name: broken(contract, computed[name]) for name, contract in EVERY.items()}
    assert {name: found for name, found in faults.items() if found} == {}
