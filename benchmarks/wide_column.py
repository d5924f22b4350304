"""(v) A wide column: hours of visits written again, with the line in one table, in bronze, and in a second table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from assets.silver.visits import ARRIVAL_ORDER, IDENTITY
from assets.transforms import visit_events
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from benchmarks.same import require_equal
from blogdata.cli.pipeline import Pipeline
from blogdata.lake.commit import Account, Commit
from blogdata.lake.lake import Lake
from blogdata.patterns.error_management import windowed_deduplicator
from blogdata.patterns.idempotency.transactional_writer import overwrite_together
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.patterns.storage import vertical_partitioner
from blogdata.publish.contract import Contract
from blogdata.publish.run import RunContext
from blogdata.publish.target import Companion, Provenance
from blogdata.publish.target import Target as WriteTarget
from blogdata.publish.writes import AppearsWith
from quality.contracts import columns as c
from quality.contracts.enriched import VISITS_ENRICHED
from quality.contracts.visits import VISITS, WHOLE_VISITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STANDARD_VISITS = 60_000
BRONZE = "bronze.visits"
ONE, LEFT, TWO = "one table", "line in bronze", "two tables"
COUNTED = "events"
SELECTED = frozenset(column.name for column in VISITS_ENRICHED.columns)
"""What the lineage reads of the visits, to compute those from which gold is computed."""
TABLES: Mapping[str, Contract] = {
    ONE: replace(WHOLE_VISITS, dataset="bench.visits_one"),
    LEFT: replace(VISITS, dataset="bench.visits_left", migrations=()),
    TWO: replace(VISITS, dataset="bench.visits_two", migrations=(), measures={**VISITS.measures, COUNTED: "count(1)"}),
}
LINES = Contract(
    dataset="bench.lines",
    description="The lines of the events in bench.visits_two",
    owner="team:platform",
    columns=(c.EVENT_HOUR, *c.VISIT[:2], c.VISIT[4], c.RAW),
    key=VISITS.key,
    partitioning=VISITS.partitioning,
    write=AppearsWith(main=TABLES[TWO].dataset),
)


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many visits, all of whose hours are written again in each round."""
    visits = size.visits or STANDARD_VISITS
    deployment = bench.deployment("wide", landing=bench.simulated(visits))
    Pipeline(deployment.settings, quiet=True).run(for_=[VISITS.dataset])
    world = World(bench=bench, lake=Lake(root=str(deployment.settings.lake)))
    say(f"{len(world.hours)} hours, {size.rounds} rounds")
    written = interleaved([Peer(name=name, run=world.writer(name)) for name in TABLES], size.rounds, warm_ups=1)
    for name in (LEFT, TWO):
        require_equal(world.whole(ONE), world.whole(name), where=f"{ONE} and {name}")
    readers = [Peer(name=name, run=lambda number, name=name: world.an_hour(name).collect()) for name in TABLES]  # type: ignore[misc]
    found = interleaved(readers, size.rounds, warm_ups=1)
    facts = {name: world.facts(name) for name in TABLES}
    cases = [
        Case(
            name=f"{visits:,} visits, {len(world.hours)} hours written again",
            seconds=written,
            ratios=[ratio(written, LEFT, ONE), ratio(written, TWO, ONE)],
            facts={"a round": facts},
        ),
        Case(
            name="the lines of one hour",
            seconds=found,
            ratios=[ratio(found, LEFT, ONE), ratio(found, TWO, ONE)],
        ),
    ]
    written_of = {name: facts[name]["bytes written"] for name in (ONE, LEFT)}
    share = round(written_of[LEFT] / written_of[ONE], 3)
    target = Target(what=f"bytes written, {LEFT} / {ONE}", bound="at most", limit=0.6, found=share)
    deployment.remove()
    return Result(letter="v", title="A wide column", cases=cases, targets=[target])


def _bytes_of(file: Path, names: Collection[str]) -> int:
    """Add up what columns take in a file, compressed."""
    group = pq.read_metadata(file).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in names)


@dataclass(frozen=True, kw_only=True)
class World:
    """A lake with the visits that the platform has published, and the tables of the three layouts."""

    bench: Bench
    lake: Lake

    @property
    def hours(self) -> Sequence[str]:
        """The hours of the visits."""
        return sorted(self.lake.row_counts(VISITS.dataset, "event_hour"))

    def read(self, dataset: str) -> DataFrame:
        """Read a table."""
        return self.lake.read(self.bench.spark, dataset)

    def writer(self, name: str) -> Callable[[int], Commit]:
        """Return what writes all hours in a layout, as `silver.visits` is computed and audited."""
        contract = TABLES[name]
        counted = self.read(VISITS.dataset).groupBy("event_hour").agg(F.sum("occurrences")).collect()
        accounts = {hour: Account(rows_in=int(rows)) for hour, rows in counted}

        def write(number: int) -> Commit:
            run = RunContext(run_id=f"{name} {number}", job="benchmark", code_version="1")
            target = WriteTarget(lake=self.lake, contract=contract, run=run)
            together = overwrite_together(
                self._unique(), target, self.hours, Provenance(accounts=accounts), companions=self._companions(name)
            )
            return together.main

        return write

    def whole(self, name: str) -> DataFrame:
        """Read a layout as one table, with the columns in one order."""
        rows = self.read(TABLES[name].dataset)
        if name == LEFT:
            rows = vertical_partitioner.whole(rows, self.read(BRONZE), TABLES[LEFT])
        elif name == TWO:
            rows = rows.join(self.read(LINES.dataset), list(LINES.identity))
        return rows.select(*[column.name for column in WHOLE_VISITS.columns])

    def an_hour(self, name: str) -> DataFrame:
        """Read the lines of one hour."""
        return self.whole(name).where(F.col("event_hour") == self.hours[len(self.hours) // 2]).select("raw")

    def facts(self, name: str) -> dict[str, Any]:
        """Return what the newest version of a layout has written, and what its tables take."""
        datasets = [TABLES[name].dataset, *([LINES.dataset] if name == TWO else [])]
        tables = [table for dataset in datasets if (table := self.lake.caught_up(dataset)) is not None]
        files = [Path(file.removeprefix("file://")) for table in tables for file in table.file_uris()]
        rows = len(tables[0].file_uris())
        return {
            "files written": len(files),
            "bytes written": sum(file.stat().st_size for file in files),
            "bytes of the columns that the lineage reads": sum(_bytes_of(file, SELECTED) for file in files[:rows]),
        }

    def _unique(self) -> DataFrame:
        identity = {"key": ("event_hour", *IDENTITY), "order": ARRIVAL_ORDER}
        valid = self.read(BRONZE).where((F.size("reasons") == 0) & F.col("filtered_by").isNull())
        events = visit_events.parse(valid, frozenset({visit_events.JSON})).withColumn("_replay", is_replay())
        return windowed_deduplicator.deduplicate(events, payload=F.xxhash64("raw"), **identity)

    def _companions(self, name: str) -> Sequence[Companion]:
        if name != TWO:
            return ()
        return [
            Companion(
                contract=LINES,
                frame=self._unique(),
                counted_measure=COUNTED,
                kept_measure=COUNTED,
                dropped_reason="none",
            )
        ]
