"""(n) Layouts of final weeks: what a query reads, its time, and what the layout costs to write."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks import engines, weekly_rows
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, interleaved, ratio, say
from benchmarks.same import ResultsDiffer, require_equal
from benchmarks.scans import Scan, scanned
from blogdata.lake.lake import Lake
from blogdata.lake.stored import Stored
from blogdata.patterns.storage import bucket, sorter
from blogdata.publish import tables
from blogdata.publish.contract import Contract
from blogdata.publish.run import RunContext
from blogdata.publish.target import Target
from blogdata.publish.writes import ByPeriod, Sorted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STANDARD_VISITS = 5_000_000
FILE_BYTES = Sorted(by=()).file_bytes
LEAST_FILES = 16
PLAIN, STATISTICS, STRAIGHT, ZORDER = (
    "order of time, no statistics",
    "order of time, statistics",
    "order of user_bucket, then page",
    "Z-order of user_bucket and page",
)
ORDER = {
    PLAIN: ("event_week", "event_time"),
    STATISTICS: ("event_week", "event_time"),
    STRAIGHT: ("event_week", "user_bucket", "page"),
    ZORDER: ("event_week", "event_time"),
}
WHEN = {
    PLAIN: "every query reads all of a week",
    STATISTICS: "queries by time (Metadata Enhancer); costs next to nothing",
    STRAIGHT: "queries and joins by visitor only",
    ZORDER: "final rows, queries by either (Sorter)",
}
SHUFFLED, TOGETHER = "shuffled", "by bucket"


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many page views of four weeks, or with five million."""
    visits = size.visits or STANDARD_VISITS
    world = World(bench, visits)
    say(f"{world.rows:,} page views of {len(world.weeks)} weeks in about {world.number} files, {size.rounds} rounds")
    written = interleaved([_peer(f"write: {name}", partial(world.write, name)) for name in ORDER], size.rounds)
    world.require_same()
    asked = interleaved(
        [_peer(f"{what}: {name}", partial(world.ask, name, what)) for name in ORDER for what in world.questions],
        size.rounds,
        warm_ups=1,
    )
    joins = {
        f"join, {SHUFFLED}: {ZORDER}": partial(world.shuffled, ZORDER),
        f"join, {TOGETHER}: {ZORDER}": partial(world.together, ZORDER),
        f"join, {TOGETHER}: {STRAIGHT}": partial(world.together, STRAIGHT),
    }
    peers = [_peer(name, partial(world.answer, job)) for name, job in joins.items()]
    joined = interleaved(peers, size.rounds, warm_ups=1)
    seconds = {**written, **asked, **joined}
    facts = {
        "rows": {"all": world.rows, "late": world.late},
        "layouts": world.table(seconds),
        "a join and an aggregation by visitor": {
            name: _read(scanned(job()), seconds[name]) for name, job in joins.items()
        },
        "the same rows, by engine": engines.digests(world.lake, world.dataset(ZORDER), bench.spark),
    }
    case = Case(
        name=f"{visits:,} page views",
        seconds=seconds,
        ratios=[ratio(seconds, *list(joins)[:2]), ratio(seconds, f"write: {ZORDER}", f"write: {PLAIN}")],
        facts=facts,
    )
    return Result(letter="n", title="Layouts of final weeks", cases=[case])


class World:
    """The rows, and a table of them for each layout."""

    def __init__(self, bench: Bench, visits: int) -> None:
        self._spark = bench.spark
        self.lake = Lake(root=str(bench.folder("layouts") / "lake"))
        self._base = str(bench.folder("layouts-rows") / "rows")
        made = weekly_rows.make(bench, visits)
        made.rows.write.parquet(self._base)
        self.late = made.late
        self._answers: set[tuple[Any, ...]] = set()

    @cached_property
    def _frame(self) -> DataFrame:
        found: DataFrame = self._spark.read.parquet(self._base)
        return found

    @cached_property
    def rows(self) -> int:
        """Number of the rows."""
        return self._frame.count()

    @cached_property
    def weeks(self) -> list[str]:
        """The weeks, in order."""
        return sorted(row[0] for row in self._frame.select("event_week").distinct().collect())

    @cached_property
    def number(self) -> int:
        """Number of files that each layout is written to."""
        size = sum(file.stat().st_size for file in Path(self._base).glob("*.parquet"))
        return max(LEAST_FILES, size // FILE_BYTES)

    @cached_property
    def questions(self) -> Mapping[str, str]:
        """The predicates: of a visitor with the usual number of page views, of a page, of six hours."""
        user = self._usual("user_id", "user_bucket")
        page = self._usual("page")
        day = self.weeks[len(self.weeks) // 2]
        return {
            "a visitor": f"user_bucket = {user['user_bucket']} AND user_id = '{user['user_id']}'",
            "a page": f"page = '{page['page']}'",
            "six hours": f"event_time >= TIMESTAMP'{day} 06:00:00' AND event_time < TIMESTAMP'{day} 12:00:00'",
        }

    def dataset(self, name: str) -> str:
        """Return the name of a layout's table."""
        return f"bench.layout_{list(ORDER).index(name)}"

    def write(self, name: str) -> None:
        """Write a layout's table anew."""
        target = self._target(name)
        contract, path = target.contract, self.lake.path(target.contract.dataset)
        shutil.rmtree(path, ignore_errors=True)
        tables.create_or_evolve(self._spark, self.lake, contract)
        order = ORDER[name]
        laid = self._frame.repartitionByRange(self.number, *order).sortWithinPartitions(*order)
        laid.select(*[column.name for column in contract.columns]).write.format("delta").mode("append").save(path)
        if name == ZORDER:
            version = self.lake.version(contract.dataset)
            assert version is not None
            sorter.sort(self._spark, target, version)

    def require_same(self) -> None:
        """Compare the rows of all layouts."""
        for name in ORDER:
            require_equal(self.read(name).select(*self._frame.columns), self._frame, where=name)

    def read(self, name: str) -> DataFrame:
        """Read a layout's table."""
        return self.lake.read(self._spark, self.dataset(name))

    def query(self, name: str, what: str) -> DataFrame:
        """Build a query; `all` reads every file."""
        rows = self.read(name)
        chosen = rows if what == "all" else rows.where(self.questions[what])
        return chosen.agg(F.count(F.lit(1)), F.max("visit_id"), F.max("referral_host"))

    def ask(self, name: str, what: str) -> None:
        """Run a query."""
        self.query(name, what).collect()

    def shuffled(self, name: str) -> DataFrame:
        """Count the page views of the visitors of the newer weeks, and those they had before, as anybody would."""
        newer, older = (
            self.read(name).where(F.col("event_week").isin(*weeks)).groupBy("user_id").agg(F.count("*").alias(count))
            for weeks, count in zip(self._halves, ("views", "before"), strict=True)
        )
        return _summed(newer.join(older.hint("merge"), "user_id", "left"))

    def together(self, name: str) -> DataFrame:
        """Count them by bucket, without a shuffle; the sums of the tasks are brought together at the end."""
        newer, older = (
            bucket.read(self._spark, self._stored(name, weeks)).aggregate(("user_id",), F.count(F.lit(1)).alias(count))
            for weeks, count in zip(self._halves, ("views", "before"), strict=True)
        )
        return _summed(newer.join(older, "left").frame())

    def answer(self, join: Callable[[], DataFrame]) -> None:
        """Run a join, and require that each gives the same figures."""
        found = tuple(join().collect()[0])
        self._answers.add(found)
        if len(self._answers) > 1:
            raise ResultsDiffer(what=f"not the same figures: {self._answers}", where="joins", next_step="mend one")

    def table(self, seconds: Mapping[str, Sequence[float]]) -> dict[str, dict[str, str]]:
        """Return the table of the layouts, by column."""
        found: dict[str, dict[str, str]] = {
            "all rows": {name: _read(scanned(self.query(name, "all"))) for name in ORDER}
        }
        for what in self.questions:
            found[what] = {name: _read(scanned(self.query(name, what)), seconds[f"{what}: {name}"]) for name in ORDER}
        found["to write"] = {
            name: f"{median(seconds[f'write: {name}']):.1f} s, {self._log_bytes(name) / 1000:.0f} kB of log"
            for name in ORDER
        }
        return {**found, "when": WHEN}

    @property
    def _halves(self) -> tuple[list[str], list[str]]:
        middle = len(self.weeks) // 2
        return self.weeks[middle:], self.weeks[:middle]

    def _stored(self, name: str, weeks: Sequence[str]) -> Stored:
        version = self.lake.version(self.dataset(name))
        assert version is not None
        return Stored(lake=self.lake, dataset=self.dataset(name), version=version, partitions=weeks)

    def _target(self, name: str) -> Target:
        contract: Contract = weekly_rows.CONTRACT
        assert isinstance(contract.write, ByPeriod)
        assert contract.write.frozen is not None
        # Z-order gives as many files as the others have; what a file has at the standard size is the declared one.
        size = min(FILE_BYTES, sum(file.stat().st_size for file in Path(self._base).glob("*.parquet")) // self.number)
        contract = replace(
            contract,
            dataset=self.dataset(name),
            statistics=() if name == PLAIN else contract.statistics,
            write=replace(contract.write, frozen=replace(contract.write.frozen, file_bytes=size)),
        )
        run = RunContext(run_id="benchmark", job="benchmark", code_version="benchmark")
        return Target(lake=self.lake, contract=contract, run=run)

    def _usual(self, *columns: str) -> Any:
        """Return the value that has as many rows as half of all others have at most."""
        counted = self._frame.where(F.col(columns[0]).isNotNull()).groupBy(*columns).count()
        (half,) = counted.agg(F.percentile_approx("count", 0.5)).collect()[0]
        return counted.where(F.col("count") == half).orderBy(*columns).first()

    def _log_bytes(self, name: str) -> int:
        log = Path(self.lake.path(self.dataset(name))) / "_delta_log"
        return sum(file.stat().st_size for file in log.glob("*.json"))


def _peer(name: str, job: Callable[[], object]) -> Peer:
    return Peer(name=name, run=lambda number: job())


def _summed(counts: DataFrame) -> DataFrame:
    known = counts.where(F.col("user_id").isNotNull())
    return known.agg(F.count(F.lit(1)), F.sum("views"), F.count("before"), F.sum("before"))


def _read(scan: Scan, seconds: Sequence[float] = ()) -> str:
    read = f"{scan.files} files, {scan.bytes / 1e6:.1f} MB"
    moved = f", {scan.shuffled / 1e6:.1f} MB shuffled" if scan.shuffled > 10_000 else ""
    return f"{read}{moved}, {median(seconds):.2f} s" if seconds else read
