"""gold.visits_shared: visitors of a section in a part of a day, for people outside, where enough of them look alike."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.gold.page_views import gather, named
from blogdata.contract.publication import Account, Commit
from blogdata.operate import secrets
from blogdata.patterns.security import anonymizer
from blogdata.patterns.security.pseudo_anonymizer import keyed_hash
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts.visits_shared import GIVEN_UP, PROMISED
from quality.keys import VISITOR_KEY

PURPOSE = "number of a shared visitor"
WEEK, PERSON = "event_week", "user_id"


def grouped(visits: DataFrame) -> DataFrame:
    """Group visitors by what others may know of them, from rows of silver.visits_enriched with `event_week` STRING.

    One row for each part of a day, section, browser, country and visitor who may be shared: those columns, the week,
    `user_id`, `came_from`, `page_views`, and `shared` BOOLEAN: enough visitors look alike.
    """
    views = visits.where("NOT keep_private").select(
        PERSON,
        WEEK,
        F.substring("event_hour", 1, 10).alias("event_date"),
        part_of_day(F.col("event_hour")).alias("part_of_day"),
        section(F.col("page")).alias("section"),
        named(F.col("browser")).alias("browser"),
        named(F.col("country")).alias("country"),
        F.col("referral_host").alias("came_from"),
    )
    counted = views.groupBy(*views.columns).agg(F.count("*").alias("page_views"))
    hosts = anonymizer.generalize(
        counted, (WEEK, "came_from"), person=PERSON, k=PROMISED.k, give_up=(PROMISED.sensitive,)
    )
    known = anonymizer.generalize(hosts, PROMISED.alike, person=PERSON, k=PROMISED.k, give_up=GIVEN_UP)
    return anonymizer.group(known, PROMISED, person=PERSON).withColumn(WEEK, week_of(F.col("event_date")))


def shared(persons: DataFrame, secret: str) -> DataFrame:
    """Choose the rows of :func:`grouped` that may be shared, without what leads to a visitor."""
    drawn = keyed_hash(F.concat_ws("\n", *PROMISED.alike, PERSON), secret, PURPOSE)
    rows = anonymizer.share(persons.where("shared"), PROMISED, draw=drawn)
    return rows.withColumn(WEEK, week_of(F.col("event_date")))


def left_out(visits: DataFrame, persons: DataFrame) -> Mapping[str, Mapping[str, int]]:
    """Count the page views that no shared row stands for: week to reason to their number."""
    beyond = F.greatest(F.col("page_views") - PROMISED.most, F.lit(0))
    withheld = persons.groupBy(WEEK).agg(
        F.lit(0).alias("private"),
        F.sum(F.when(F.col("shared"), 0).otherwise(F.col("page_views"))).alias("withheld"),
        F.sum(F.when(F.col("shared"), beyond).otherwise(0)).alias("beyond"),
    )
    private = (
        visits.where("keep_private")
        .groupBy(WEEK)
        .agg(F.count("*").alias("private"), F.lit(0).alias("withheld"), F.lit(0).alias("beyond"))
    )
    summed = withheld.union(private).groupBy(WEEK).agg(*[F.sum(name).alias(name) for name in withheld.columns[1:]])
    return {row[WEEK]: {name: row[name] for name in summed.columns[1:]} for row in summed.collect()}


def part_of_day(event_hour: Column) -> Column:
    """Name the quarter of a day, such as 06-12, of an hour such as 2026-01-31T05."""
    first = F.floor(F.substring(event_hour, 12, 2).cast("int") / 6) * 6
    return F.format_string("%02d-%02d", first, first + 6)


def section(page: Column) -> Column:
    """Take the first part of a page's path; / for the front page and pages beside it, whose path has no other part."""
    first = F.regexp_extract(page, r"^/([^/]+)/", 1)
    return F.when(F.length(first) > 0, first).otherwise(F.lit("/"))


def week_of(event_date: Column) -> Column:
    """Return the Monday of a day's week, as text."""
    return F.date_trunc("week", event_date.cast("date")).cast("date").cast("string")


@computes("gold.visits_shared")
def visits_shared(step: Step) -> Mapping[str, Commit]:
    """Share a week's visitors who look alike, and account for those who are withheld."""
    period = gather(step)
    persons = grouped(period.visits)
    secret = secrets.read(step.deployment.settings(), VISITOR_KEY).reveal()
    reasons = left_out(period.visits, persons)
    accounts = {
        week: Account(rows_in=account.rows_in, reasons=reasons.get(week, {}))
        for week, account in period.accounts.items()
    }
    return step.publish(shared(persons, secret), Upstream(accounts=accounts))
