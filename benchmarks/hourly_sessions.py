"""(l) Sessions of three days: the Incremental Sessionizer, as `silver.sessions`, compared with one window query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from assets.transforms import session_rules as rules
from benchmarks.deployment import Bench, Deployment, RunFailed
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from benchmarks.same import require_equal
from blogdata.cli.outcome import Outcome
from blogdata.cli.pipeline import Pipeline
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.patterns.data_value.incremental_sessionizer import sessionize
from blogdata.patterns.idempotency import keyed_idempotency
from blogdata.planning.window import Window as Span
from quality.contracts import CONTRACTS
from quality.contracts.sessions import INACTIVITY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STANDARD_VISITS = 5_000_000
SESSIONS, VISITS = "silver.sessions", "silver.visits"
ABOVE = ("bronze.visits", VISITS)
PLATFORM, PATTERN, QUERY = "platform", "pattern, plain write", "window query"
WHOLE = Span(start=None, end=None)


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many page views, or with five million."""
    visits = size.visits or STANDARD_VISITS
    deployment = bench.deployment("sessions", landing=bench.simulated(visits))
    say(f"sessions of {visits:,} page views, {size.rounds} rounds")
    world = World(bench=bench, deployment=deployment, folder=bench.folder("sessions-of-peers"))
    # The peers compute the hours that the platform has computed.
    for dataset in (*ABOVE, SESSIONS):
        world.run(dataset)
    steps: list[float] = []
    peers = [
        Peer(name=PLATFORM, run=lambda number: steps.append(world.run(SESSIONS).steps[0]["seconds"])),
        Peer(name=PATTERN, run=lambda number: world.write(PATTERN, world.by_pattern())),
        Peer(name=QUERY, run=lambda number: world.write(QUERY, world.by_query())),
    ]
    seconds = interleaved(peers, size.rounds, warm_ups=1)
    facts = {
        "rows": world.require_same(),
        "step of the platform's run (seconds, median)": round(median(steps[-size.rounds :]), 2),
    }
    ratios = [ratio(seconds, PLATFORM, QUERY), ratio(seconds, PATTERN, QUERY)]
    target = Target(
        what=f"platform / window query at {STANDARD_VISITS:,} page views",
        bound="at most",
        limit=1.15,
        found=ratios[0].value if visits == STANDARD_VISITS else None,
    )
    case = Case(name=f"{visits:,} page views", seconds=seconds, ratios=ratios, facts=facts)
    deployment.remove()
    return Result(letter="l", title="Sessions of hours", cases=[case], targets=[target])


@dataclass(frozen=True, kw_only=True)
class World:
    """A deployment with the page views, and a folder for the peers' tables."""

    bench: Bench
    deployment: Deployment
    folder: Path

    @property
    def lake(self) -> Lake:
        """The lake of the deployment."""
        return Lake(root=str(self.deployment.settings.lake))

    @property
    def hours(self) -> list[str]:
        """The hours that the platform has computed."""
        return sorted(EventLog(self.lake).publications(SESSIONS))

    def run(self, dataset: str) -> Outcome:
        """Recompute all partitions of a dataset, as `blogdata run --select` does."""
        outcome = Pipeline(self.deployment.settings, quiet=True).run(window=WHOLE, select=[dataset])
        if not outcome.ok or not outcome.steps:
            raise RunFailed(
                what="; ".join(outcome.problems) or f"{dataset} did not run",
                where=str(self.deployment.settings.home),
                next_step="run it by itself to see more: BLOGDATA_HOME=<that folder> blogdata run",
            )
        return outcome

    def page_views(self) -> DataFrame:
        """Read the page views, from which both peers compute sessions."""
        return rules.page_views(self.lake.read(self.bench.spark, VISITS))

    def by_pattern(self) -> DataFrame:
        """Compute the sessions as the platform does."""
        return sessionize(self.page_views(), None, rules.SPEC, partitions=self.hours)

    def by_query(self) -> DataFrame:
        """Compute the sessions with the obvious query: all hours together, nothing continued between runs."""
        order = ("event_time", "visit_id", "page")
        of_user = Window.partitionBy("user_id").orderBy(*order)
        silence = F.col("event_time") - F.lag("event_time").over(of_user)
        begins = F.coalesce(silence > F.lit(INACTIVITY), F.lit(True)).cast("int")
        at = F.struct(*order)
        grouped = (
            self.page_views()
            .withColumn("number", F.sum(begins).over(of_user))
            .groupBy("user_id", "number")
            .agg(
                F.min("event_time").alias("started_at"),
                F.max("event_time").alias("ended_at"),
                F.count(F.lit(1)).alias("pages"),
                F.min_by("page", at).alias("entry_page"),
                F.min_by("referral", at).alias("referral"),
                F.max_by("page", at).alias("exit_page"),
                F.max("keep_private").alias("keep_private"),
                F.slice(F.sort_array(F.collect_list(at))["page"], 1, 5).alias("first_pages"),
                F.min(F.struct(*rules.SPEC.position)).alias("first"),
            )
        )
        over = F.date_format(F.col("ended_at") + F.lit(INACTIVITY), "yyyy-MM-dd'T'HH")
        last = F.lit(self.hours[-1])
        position = [F.col(f"first.{name}") for name in rules.SPEC.position]
        return grouped.select(
            F.least(over, last).alias("event_hour"),
            keyed_idempotency.key(*position).alias("session_id"),
            *("user_id", "started_at", "ended_at", "pages", "entry_page", "referral", "exit_page", "keep_private"),
            "first_pages",
            (over <= last).alias("is_completed"),
        )

    def write(self, name: str, sessions: DataFrame) -> None:
        """Write a peer's table with the same statistics as the platform's."""
        writer = sessions.write.format("delta").mode("overwrite").partitionBy("event_hour")
        writer.option("delta.dataSkippingStatsColumns", ",".join(CONTRACTS[SESSIONS].statistics)).save(self._path(name))

    def require_same(self) -> dict[str, int]:
        """Compare the tables; the query has no session states between its hours."""
        ours = self.lake.read(self.bench.spark, SESSIONS)
        pattern, query = (self.bench.spark.read.format("delta").load(self._path(name)) for name in (PATTERN, QUERY))
        columns = [column.name for column in CONTRACTS[SESSIONS].columns]
        states = require_equal(ours.select(columns), pattern.select(columns), where=f"{SESSIONS} and {PATTERN}")
        final = ours.where(F.col("is_completed") | (F.col("event_hour") == self.hours[-1])).select(query.columns)
        sessions = require_equal(final, query, where=f"{SESSIONS} and {QUERY}")
        return {VISITS: self.page_views().count(), SESSIONS: states, "sessions": sessions}

    def _path(self, name: str) -> str:
        return str(self.folder / name.replace(", ", "-").replace(" ", "-"))
