"""A lineage of three tables on the platform's own mechanics, small enough to run thousands of times."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import functions as F

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import WHOLE_TABLE, Account, Commit
from blogdata.contract.schema import Partitioning
from blogdata.contract.writes import Replace, Slices
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.patterns.error_management import dynamic_late_data_integrator, windowed_deduplicator
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.idempotency.merger import differences, merge
from blogdata.planning.reach import EventsOf
from blogdata.runs import slices
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.step import Step
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, Target
from toy import declared, merged, target

HOURS = ("2026-01-05T00", "2026-01-05T01", "2026-01-05T02", "2026-01-05T03")


@dataclass(frozen=True, order=True)
class Line:
    """A landed line: its position and its content."""

    arrival: str
    line: int
    hour: str
    click: int
    page: str


BRONZE = declared(
    "bronze.clicks",
    "arrival STRING NOT NULL, line BIGINT NOT NULL, hour STRING NOT NULL, click BIGINT NOT NULL, page STRING NOT NULL",
    key=("arrival", "line"),
    partitioning=Partitioning(column="arrival", grain=Grain.HOUR),
    breakdowns={"event_hours": ("hour",)},
)
SILVER = declared(
    "silver.clicks",
    "hour STRING NOT NULL, click BIGINT NOT NULL, page STRING NOT NULL, occurrences BIGINT NOT NULL, "
    "conflicts BIGINT NOT NULL",
    reads=(Read(dataset="bronze.clicks", reach=EventsOf(breakdown="event_hours")),),
    write=Replace(slices=Slices(of="bronze.clicks", column="arrival")),
    key=("click",),
    partitioning=Partitioning(column="hour", grain=Grain.HOUR),
    stands_for="sum(occurrences)",
    reasons={"duplicates": "sum(occurrences - 1)"},
)
GOLD = declared(
    "gold.pages",
    "page STRING NOT NULL, clicks BIGINT NOT NULL",
    key=("page",),
    stands_for="sum(clicks)",
    reasons={"counted": "sum(clicks - 1)"},
)
CONTRACTS = {contract.dataset: contract for contract in (BRONZE, SILVER, GOLD)}
LINES = "arrival STRING, line BIGINT, hour STRING, click BIGINT, page STRING"


class Lineage:
    """The tables of one lake, and how each is published."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        self.lake = Lake(root=str(root))
        self.events = EventLog(self.lake)
        self.added = 0

    def arrive(self, landed: Mapping[str, Sequence[Line]], run: str, probe: Path | None = None) -> Commit:
        lines = [tuple(vars(line).values()) for part in landed.values() for line in part]
        accounts = {key: Account(rows_in=len(part)) for key, part in landed.items()}
        frame, aim = self.spark.createDataFrame(lines, LINES), self._target(BRONZE, run, probe)
        return overwrite_partitions(frame, aim, sorted(landed), Provenance(accounts=accounts))

    def integrate(
        self, hours: Collection[str], run: str, probe: Path | None = None, *, stale: Collection[str] = ()
    ) -> Commit:
        """Compute hours of clicks from all arrivals; to stale ones rows are only added where that is enough."""
        step = Step(
            contract=SILVER,
            partitions=tuple(hours),
            spark=self.spark,
            access=LakeResource(root=str(self.root), landing=str(self.root / "landing")),
            deployment=DeploymentResource(home=str(self.root)),
            run=self._target(SILVER, run, probe).run,
            stale=stale,
        )
        version = step.pin(BRONZE.dataset)
        arrived = dynamic_late_data_integrator.state(
            self.events.publications(BRONZE.dataset), {}, source=BRONZE.dataset, breakdown="event_hours"
        )
        bronze, added = step.read(BRONZE.dataset), slices.additions(step)
        if added.of:
            new = bronze.where(slices.rows_to_read(added, SILVER, tuple(added.of)))
            added = slices.without_repeated(step, added, new)
        rows = bronze.where(slices.rows_to_read(added, SILVER, step.partitions))
        unique = windowed_deduplicator.deduplicate(
            rows, key=("hour", "click"), order=("arrival", "line"), payload=F.col("page")
        )
        provenance = Provenance(
            inputs={BRONZE.dataset: version},
            accounts={hour: Account(rows_in=arrived[hour].rows if hour in arrived else 0) for hour in hours},
            additions=added,
        )
        self.added += len(added.of)
        return overwrite_partitions(unique, self._target(SILVER, run, probe), sorted(hours), provenance)

    def count(self, run: str, probe: Path | None = None) -> Commit:
        version = self.version(SILVER.dataset)
        clicks = self.lake.read(self.spark, SILVER.dataset, version)
        pages = clicks.groupBy("page").agg(F.count(F.lit(1)).alias("clicks"))
        rows_in = sum(entry.rows_out for entry in self.events.publications(SILVER.dataset).values())
        provenance = Provenance(inputs={SILVER.dataset: version}, accounts={WHOLE_TABLE: Account(rows_in=rows_in)})
        aim = self._target(GOLD, run, probe)
        at = self.lake.version(GOLD.dataset)
        if at is None:
            return merged(pages.selectExpr("*", "false AS is_deleted"), aim, provenance)
        current = self.lake.read(self.spark, GOLD.dataset, at)
        return merge(differences(pages, current, GOLD), aim, provenance, at=at)

    def behind(self) -> list[str]:
        """List the hours of clicks that have not read all arrivals."""
        lines = dynamic_late_data_integrator.state(
            self.events.publications(BRONZE.dataset),
            self.events.publications(SILVER.dataset),
            source=BRONZE.dataset,
            breakdown="event_hours",
        )
        return [hour for hour, line in lines.items() if line.behind]

    def pages_behind(self) -> bool:
        counted = self.events.publications(GOLD.dataset).get(WHOLE_TABLE)
        seen = -1 if counted is None else counted.inputs[SILVER.dataset]
        return any(entry.version > seen for entry in self.events.publications(SILVER.dataset).values())

    def version(self, dataset: str) -> int:
        version = self.lake.version(dataset)
        assert version is not None
        return version

    def rows(self, dataset: str, version: int | None = None) -> list[tuple[Any, ...]]:
        """Return a table's rows, sorted, as a reader without Spark sees them."""
        if self.lake.version(dataset) is None:
            return []
        table = DeltaTable(self.lake.path(dataset), version=version)
        names = [column.name for column in CONTRACTS[dataset].columns]
        return sorted(tuple(row[name] for name in names) for row in table.to_pyarrow_table().to_pylist())

    def statement(self, dataset: str, sql: str) -> None:
        """Run one of Delta's maintenance statements on a table, for which `{table}` stands."""
        self.spark.sql(sql.format(table=f"delta.`{self.lake.path(dataset)}`")).collect()

    def problems(self, dataset: str) -> list[str]:
        if self.lake.version(dataset) is None:
            return []
        lines = ledger.audit(self.lake, self.events, CONTRACTS[dataset])
        return [f"{dataset} {line.entry.partition}: {line.problem}" for line in lines if line.problem]

    def _target(self, contract: Contract, run: str, probe: Path | None) -> Target:
        return target(self.root, run, contract=contract, probe=None if probe is None else str(probe))
