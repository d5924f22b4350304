"""Bronze to gold as one hand-written PySpark and Delta script: the platform's peer.

The same tables by the same rules, each written once for the whole span with `partitionBy` and `replaceWhere`. Nothing
of the platform is used save its line reader: Spark's own has no byte offsets. It trusts its input where the platform
does not: no line contains the marker that separates objects, and users and devices are formatted as by the simulator.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks import straight_ads, straight_places, straight_sessions
from benchmarks.straight_rules import (
    ARRIVAL,
    IDENTITY,
    STRICT,
    TECHNICAL,
    TRACKED,
    USER_LOOK,
    USER_TIMES,
    absent,
    is_object,
    is_text,
    iso_time,
    judged,
    midnight,
    named,
    parse,
    present,
    ranked,
    wrapped,
)

CUBE = ("device_type", "browser", "referral_host", "country")
PLACE = ", ".join(
    f"{name} {'timestamp' if name in straight_places.TIMES else 'string'}" for name in straight_places.COLUMNS
)


class Script:
    """The script, as a class to share the session and both folders."""

    def __init__(self, spark: SparkSession, landing: Path, lake: Path) -> None:
        self.spark = spark
        self.landing = landing
        self.lake = lake

    def run(self) -> None:
        """Compute bronze, silver and gold."""
        self.users()
        self.devices()
        self.arrivals()
        self.late_visits()
        self.event_hours()
        self.ads()
        self.gold()
        self.visitors()

    def read(self, table: str) -> DataFrame:
        return self.spark.read.format("delta").load(f"{self.lake}/{table}")

    def write(self, frame: DataFrame, table: str, partition: str = "", span: tuple[str, str] | None = None) -> None:
        writer = frame.write.format("delta").mode("overwrite")
        if span:
            writer = writer.partitionBy(partition)
            writer = writer.option("replaceWhere", f"{partition} >= '{span[0]}' AND {partition} <= '{span[1]}'")
        writer.save(f"{self.lake}/{table}")

    def lines(self, table: str) -> DataFrame:
        read = self.spark.read.format("lines").load(str(self.landing / table))
        return read.withColumn("source_file", F.substring_index("_metadata.file_path", f"{self.landing}/", -1))

    def days(self, table: str) -> list[str]:
        return sorted(folder.name[len("date=") :] for folder in (self.landing / table).glob("date=*"))

    def hours(self) -> tuple[str, str]:
        folders = sorted((self.landing / "visits").glob("date=*/hour=*"))
        keys = [f"{folder.parent.name[len('date=') :]}T{folder.name[len('hour=') :]}" for folder in folders]
        return keys[0], keys[-1]

    def users(self) -> None:
        days = self.days("users")
        text = F.col("raw").cast("string")
        looked = self.lines("users").withColumns(
            {
                "load_date": F.col("date").cast("string"),
                "look": F.from_json(wrapped(text), USER_LOOK, STRICT),
            }
        )
        user = F.get("look", F.lit(0))
        looked = looked.withColumn("ok", is_object("look")).withColumns(
            {"user": F.when(F.col("ok"), user), **{f"_{name}": iso_time(user[name]) for name in USER_TIMES}}
        )
        unreadable = [
            F.when(F.col("user")[name].isNotNull() & F.col(f"_{name}").isNull(), F.lit(f"invalid_time:{name}"))
            for name in USER_TIMES
        ]
        reasons = F.array_compact(
            F.array(
                F.when(absent(F.col("user")["id"]), F.lit("missing_field:id")),
                F.when(present(F.col("user")["id"]) & ~is_text(F.col("user")["id"]), F.lit("wrong_type:id")),
                *unreadable,
            )
        )
        bronze = looked.select(
            "raw",
            "source_file",
            "source_offset",
            "load_date",
            F.col("user")["id"].cast("string").alias("id"),
            *(F.col("user")[name].alias(name) for name in ("login", "email")),
            *(F.col(f"_{name}").alias(name) for name in USER_TIMES),
            F.when(F.col("ok"), reasons).otherwise(F.array(F.lit("not_json"))).alias("reasons"),
        )
        self.write(bronze, "bronze/users", "load_date", (days[0], days[-1]))
        usable = self.read("bronze/users").where(F.size("reasons") == 0)
        called = usable.groupBy("id", "login", "email").agg(F.count(F.lit(1)).alias("snapshots"))
        self.write(called.drop("id"), "silver/identities")
        snapshots = self.snapshots(days)
        self.write(self.user_history(snapshots, days), "silver/users")
        self.write(self.newest_users(snapshots, days[-1]), "silver/users_current")

    def snapshots(self, days: list[str]) -> DataFrame:
        number = F.create_map(*[F.lit(value) for at, day in enumerate(days) for value in (day, at)])
        a_day = Window.partitionBy("id", "load_date")
        return (
            self.read("bronze/users")
            .where(F.size("reasons") == 0)
            .drop("raw")
            .repartition("id")
            .withColumn("place", F.row_number().over(a_day.orderBy("source_file", "source_offset")))
            .withColumn("rows", F.count(F.lit(1)).over(a_day))
            .where("place = 1")
            .withColumn("number", number[F.col("load_date")])
        )

    def newest_users(self, snapshots: DataFrame, newest: str) -> DataFrame:
        runs = Window.partitionBy("id").orderBy("load_date")
        row = F.struct("login", "email", *USER_TIMES)
        same = (F.lag("number").over(runs) == F.col("number") - 1) & row.eqNullSafe(F.lag(row).over(runs))
        changed = F.when(~F.coalesce(same, F.lit(False)), F.col("load_date"))
        found = snapshots.withColumn("changed", changed).withColumn("changed_on", F.max("changed").over(runs))
        return found.where(F.col("load_date") == newest).select(
            F.col("id").alias("user_id"),
            "login",
            "email",
            *USER_TIMES,
            "changed_on",
            F.col("rows").alias("occurrences"),
        )

    def user_history(self, snapshots: DataFrame, days: list[str]) -> DataFrame:
        following = F.create_map(*[F.lit(value) for pair in pairwise(days) for value in pair])
        following = following if len(days) > 1 else F.lit(None).cast("map<string,string>")
        runs = Window.partitionBy("id").orderBy("load_date")
        before = {name: F.lag(name).over(runs) for name in ("number", *TRACKED)}
        starts = (
            before["number"].isNull()
            | (before["number"] < F.col("number") - 1)
            | ~F.struct(*TRACKED).eqNullSafe(F.struct(*(before[name] for name in TRACKED)))
        )
        versions = (
            snapshots.withColumn("starts", starts)
            .withColumn("version", F.count_if("starts").over(runs))
            .groupBy(F.col("id").alias("user_id"), "version")
            .agg(
                *(F.max_by(name, "load_date").alias(name) for name in ("login", "email", *USER_TIMES)),
                F.least(
                    midnight(F.min("load_date")),
                    F.min(F.when(F.col("number") == 0, F.col("registered_datetime"))),
                ).alias("valid_from"),
                midnight(following[F.max("load_date")]).alias("valid_to"),
                F.sum("rows").alias("snapshots"),
            )
        )
        return versions.withColumn("is_current", F.col("valid_to").isNull()).drop("version")

    def devices(self) -> None:
        newest, never = self.days("devices")[-1], F.lit(None).cast("timestamp")
        row = F.from_csv(F.col("raw").cast("string"), "type string, full_name string, version string", {"sep": ";"})
        is_row = F.col("source_offset") > 0
        header = F.when(~is_row, F.array(F.lit("header"))).otherwise(F.array().cast("array<string>"))
        read = self.lines("devices").where(F.col("date") == newest).withColumn("row", row)
        bronze = read.select(
            "raw",
            "source_file",
            "source_offset",
            F.col("date").cast("string").alias("load_date"),
            *(F.when(is_row, F.col("row")[name]).alias(name) for name in ("type", "full_name", "version")),
            header.alias("reasons"),
        )
        self.write(bronze, "bronze/devices")
        unique = (
            self.read("bronze/devices")
            .where(F.size("reasons") == 0)
            .groupBy(F.col("type").alias("device_type"), F.col("version").alias("device_version"))
            .agg(
                F.min_by("full_name", F.struct("source_file", "source_offset")).alias("full_name"),
                F.count(F.lit(1)).alias("occurrences"),
            )
            # No list came before it, so it is valid from the beginning.
            .withColumns({"changed_on": F.lit(newest), **dict.fromkeys(("valid_from", "valid_to"), never)})
        )
        self.write(unique, "silver/devices")

    def arrivals(self) -> None:
        hour = F.format_string("%sT%02d", F.col("date").cast("string"), F.col("hour"))
        lines = self.lines("visits").withColumns({"arrival_hour": hour, "format": F.lit("json")})
        self.write(judged(lines), "bronze/visits", "arrival_hour", self.hours())
        dead = (
            self.read("bronze/visits")
            .where(F.size("reasons") > 0)
            .withColumn("replay", F.element_at(F.split("source_file", "/"), -1).startswith("replay-"))
            .select("raw", "source_file", "source_offset", "arrival_hour", "format", "reasons", "replay")
        )
        self.write(dead, "bronze/dead_letters", "arrival_hour", self.hours())

    def events(self) -> DataFrame:
        first, last = self.hours()
        valid = (F.size("reasons") == 0) & F.col("filtered_by").isNull()
        return self.read("bronze/visits").where(valid & F.col("event_hour").between(first, last))

    def late_visits(self) -> None:
        events = self.read("bronze/visits").where(F.col("event_time").isNotNull() & F.col("filtered_by").isNull())
        greatest = events.groupBy("arrival_hour").agg(F.max("event_time")).orderBy("arrival_hour").collect()
        marks: list[tuple[str, datetime]] = []
        so_far: datetime | None = None
        for arrival_hour, newest in greatest:
            if so_far is not None:
                marks.append((arrival_hour, so_far - timedelta(minutes=15)))
            so_far = newest if so_far is None else max(so_far, newest)
        table = self.spark.createDataFrame(marks, "arrival_hour string, watermark timestamp")
        late = (
            events.join(F.broadcast(table), "arrival_hour")
            .where("event_time < watermark")
            .withColumn("lateness_seconds", F.expr("(unix_micros(watermark) - unix_micros(event_time)) / 1000000.0D"))
        )
        columns = (
            "arrival_hour",
            "event_hour",
            "event_time",
            "watermark",
            "lateness_seconds",
            "raw",
            *ARRIVAL[1:],
        )
        self.write(late.select(*columns), "silver/late_visits", "arrival_hour", self.hours())

    def event_hours(self) -> None:
        unique = ranked(parse(self.events()), IDENTITY).where("rank = 1").drop("rank", "winner", "differs", "raw")
        self.write(unique, "silver/visits", "event_hour", self.hours())
        visits = self.read("silver/visits")
        disputed = visits.where("conflicts > 0").select(*IDENTITY, *ARRIVAL)
        events = parse(self.events())
        won = events.join(F.broadcast(disputed), [*IDENTITY, *ARRIVAL]).select(*IDENTITY, F.col("raw").alias("won"))
        lost = events.join(F.broadcast(won), list(IDENTITY)).where("raw != won")
        lost = lost.select("event_hour", "visit_id", "event_time", "page", "raw", *ARRIVAL)
        self.write(lost, "silver/visit_conflicts", "event_hour", self.hours())
        addresses = [row[0] for row in visits.where("ip IS NOT NULL").select("ip").distinct().collect()]
        self.write(self.spark.createDataFrame(straight_places.answers(addresses), PLACE), "silver/places")
        self.write(self.enriched(visits), "silver/visits_enriched", "event_hour", self.hours())
        states = straight_sessions.states(visits, self.hours()[1])
        self.write(states, "silver/sessions", "event_hour", self.hours())
        pending = self.read("silver/sessions").where("NOT is_completed").drop("is_completed", "new_pages")
        self.write(pending, "silver/sessions_pending", "event_hour", self.hours())

    def ads(self) -> None:
        hour = F.format_string("%sT%02d", F.col("date").cast("string"), F.col("hour"))
        lines = self.lines("ads").withColumn("arrival_hour", hour)
        self.write(straight_ads.judged(lines), "bronze/ads", "arrival_hour", self.hours())
        landed = self.read("bronze/ads")
        dead = landed.where(F.size("reasons") > 0).drop("display_time", "display_hour")
        self.write(dead, "bronze/ad_dead_letters", "arrival_hour", self.hours())
        valid = landed.where((F.size("reasons") == 0) & F.col("display_hour").between(*self.hours()))
        found = ranked(straight_ads.parse(valid), straight_ads.IDENTITY)
        once = found.where("rank = 1").drop("rank", "winner", "differs")
        self.write(once, "silver/ads", "display_hour", self.hours())
        lost = found.where("differs").drop("rank", "winner", "differs", "occurrences", "conflicts", "page", "campaign")
        self.write(lost, "silver/ad_conflicts", "display_hour", self.hours())
        joined = straight_ads.with_visits(self.read("silver/visits"), self.read("silver/ads"))
        self.write(joined, "silver/visits_with_ads", "event_hour", self.hours())

    def enriched(self, visits: DataFrame) -> DataFrame:
        users = self.read("silver/users").select(
            F.col("user_id").alias("_user"),
            F.col("registered_datetime").alias("user_registered"),
            F.col("valid_from").alias("user_version_from"),
            F.coalesce("valid_to", F.lit("9999-12-31T00:00:00Z").cast("timestamp")).alias("_until"),
        )
        devices = self.read("silver/devices").select(
            "device_type", "device_version", F.col("full_name").alias("device_name"), F.lit(True).alias("_device")
        )
        places = self.read("silver/places").select("ip", "country", "outcome")
        held = (
            (F.col("user_id") == F.col("_user"))
            & (F.col("user_version_from") <= F.col("event_time"))
            & (F.col("event_time") < F.col("_until"))
        )
        host = F.lower(F.regexp_extract("referral", r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?([^/:?#]+)", 1))
        joined = visits.join(users, held, "left").join(devices, ["device_type", "device_version"], "left")
        joined = joined.join(places, "ip", "left")
        return joined.select(
            *("event_hour", "visit_id", "event_time", "user_id", "keep_private", "page", "utm", "referral", "ad_id"),
            F.when(F.length(host) > 0, host).otherwise("direct").alias("referral_host"),
            *TECHNICAL,
            "device_name",
            "user_registered",
            "user_version_from",
            F.col("_user").isNotNull().alias("user_known"),
            F.coalesce("_device", F.lit(False)).alias("device_known"),
            "country",
            *(F.lit(None).cast("string").alias(name) for name in ("region", "city")),
            F.col("outcome").alias("place_outcome"),
        )

    def gold(self) -> None:
        visits = self.read("silver/visits_enriched")
        hours = [row[0] for row in visits.select("event_hour").distinct().collect()]
        days = sorted({hour[:10] for hour in hours})
        weeks = sorted({monday(day) for day in days})
        day = F.substring("event_hour", 1, 10)
        week = F.date_trunc("week", F.to_date(day)).cast("date").cast("string")
        keyed = visits.withColumns({"event_date": day, "event_week": week})
        present = {
            "event_date": hours_of("event_date", [hour[:10] for hour in hours]),
            "event_week": hours_of("event_week", [monday(hour[:10]) for hour in hours]),
        }
        keyed = keyed.withColumns({name: named(name) for name in CUBE})
        counts = (
            F.count(F.lit(1)).alias("events"),
            F.count_distinct("visit_id").alias("visits"),
            F.count_distinct("user_id").alias("users"),
        )
        for table, period in (("gold/visits_cube_daily", "event_date"), ("gold/visits_cube_weekly", "event_week")):
            cube = keyed.groupBy(period, *CUBE).agg(*counts)
            cube = cube.select("*", present[period])
            span = (days[0], days[-1]) if period == "event_date" else (weeks[0], weeks[-1])
            self.write(cube, table, period, span)
        private = F.when(~F.col("keep_private"), F.col("user_id")).alias("user_id")
        weekly = visits.withColumn("event_week", week).select(
            *("event_week", "visit_id", "event_time", "keep_private", "page", "ad_id", "referral_host", "browser"),
            *("network_type", "device_type", "device_name", "user_known"),
            private,
            present["event_week"],
        )
        self.write(weekly, "gold/visits_weekly", "event_week", (weeks[0], weeks[-1]))
        pages = keyed.withColumn("page", named("page")).groupBy("event_date", "page").agg(*counts)
        all_views = F.sum("events").over(Window.partitionBy("event_date"))
        pages = pages.withColumn("share", F.col("events").cast("double") / all_views)
        pages = pages.select("*", present["event_date"])
        self.write(pages, "gold/page_stats", "event_date", (days[0], days[-1]))
        referrals = keyed.groupBy("event_date", "referral_host").agg(*counts).select("*", present["event_date"])
        referrals = referrals.withColumn("visitors", F.col("users"))
        self.write(referrals, "gold/referral_stats", "event_date", (days[0], days[-1]))

    def visitors(self) -> None:
        sessions, joined = self.read("silver/sessions"), self.read("silver/visits_with_ads")
        visits, ads = self.read("silver/visits_enriched"), self.read("silver/ads")
        hours = self.hours()
        days = (hours[0][:10], hours[1][:10])
        whole = F.lit(24).alias("hours_present")
        self.write(straight_sessions.of_days(sessions).select("*", whole), "gold/sessions_daily", "event_date", days)
        self.write(straight_sessions.audience(visits), "gold/audience_hourly", "event_hour", hours)
        campaigns = straight_ads.by_campaign(joined, ads).select("*", whole)
        self.write(campaigns, "gold/campaign_stats", "event_date", days)
        self.write(straight_ads.audience(joined), "gold/campaign_audience_hourly", "event_hour", hours)


def hours_of(period: str, keys: list[str]) -> Column:
    """Compute the number of hours in each period."""
    known = F.create_map(*[F.lit(value) for key in sorted(set(keys)) for value in (key, keys.count(key))])
    return known[F.col(period)].alias("hours_present")


def monday(day: str) -> str:
    """Return the first day of a date's week."""
    moment = date.fromisoformat(day)
    return (moment - timedelta(days=moment.weekday())).isoformat()
