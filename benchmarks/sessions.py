"""Sessions of three days: `silver.sessions`, computed and published again, compared with a plain window query.

The query (:func:`benchmarks.straight_sql.sessions`) computes all hours together and continues nothing between runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import same
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Size, interleaved, ratio, say
from benchmarks.straight_sql import sessions

STANDARD_VISITS = 5_000_000
SESSIONS, VISITS = "silver.sessions", "silver.visits"
PLATFORM, QUERY = "platform", "window query"


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure with this many page views, or with five million."""
    visits = size.visits or STANDARD_VISITS
    deployment = bench.deployment("sessions", landing=bench.simulated(visits))
    say(f"sessions of {visits:,} page views, {size.rounds} rounds")
    for dataset in ("bronze.visits", VISITS, SESSIONS):
        deployment.run_again(dataset)
    lake, path = deployment.settings.lake, str(bench.folder("sessions-of-the-query"))
    # The query computes the hours that the platform has computed.
    last = same.read(bench.spark, lake, SESSIONS).agg({"event_hour": "max"}).collect()[0][0]

    def write(number: int) -> None:
        states = bench.spark.sql(sessions("{visits}", f"'{last}'"), visits=same.read(bench.spark, lake, VISITS))
        writer = states.write.format("delta").mode("overwrite").partitionBy("event_hour")
        writer.option("delta.dataSkippingStatsColumns", "ended_at").save(path)

    peers = [Peer(name=PLATFORM, run=lambda number: deployment.run_again(SESSIONS)), Peer(name=QUERY, run=write)]
    seconds = interleaved(peers, size.rounds, warm_ups=1)
    ours, query = same.read(bench.spark, lake, SESSIONS), bench.spark.read.format("delta").load(path)
    rows = same.require_equal(ours, query.select(ours.columns), where=f"{SESSIONS} and {path}")
    deployment.remove()
    facts = {**ratio(seconds, PLATFORM, QUERY), "session states, equal in both": rows}
    return [Case(name=f"{visits:,} page views", seconds=seconds, facts=facts)]
