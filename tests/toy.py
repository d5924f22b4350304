"""A small contract and its rows, for tests of the mechanics."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from blogdata.contract.column_types import parse_fields
from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Account, Commit, Entry
from blogdata.contract.schema import Audit, Column, Partitioning, RowRule
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.table import arrow, tables
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext, Target

if TYPE_CHECKING:
    from blogdata.runs.step import Step

HOURS = ("2026-01-05T00", "2026-01-05T01")


def declared(dataset: str, fields: str, *, by: str = "", **more: Any) -> Contract:
    """A contract of fields such as `day STRING NOT NULL, views BIGINT`; `by` is its partition column and grain."""
    if by:
        more["partitioning"] = Partitioning(column=by, grain=Grain(by))
    columns = tuple(
        Column(name=field.name, type=str(field.type).upper(), nullable=field.nullable, description=field.name)
        for field in parse_fields(fields)
    )
    return Contract(dataset=dataset, description="For people's tests", owner="team:tests", columns=columns, **more)


def entry(dataset: str, partition: str, version: int = 0, rows: int = 0, **more: Any) -> Entry:
    figures = {"rows_in": rows, "rows_out": rows, "reasons": {}}
    return Entry(dataset=dataset, partition=partition, version=version, **{**figures, **more})


CONTRACT = declared(
    "silver.clicks",
    "hour STRING NOT NULL, click BIGINT NOT NULL, stands_for BIGINT, page STRING",
    key=("click",),
    by="hour",
    rules=(RowRule(name="positive", expression="click >= 0", description="Identifiers are positive"),),
    audits=(Audit(name="few", expression="count(1) <= 1000", description="Not too many"),),
    stands_for="sum(stands_for)",
    reasons={"duplicates": "sum(stands_for - 1)"},
    measures={"pages": "count(distinct page)"},
    breakdowns={"pages": ("page",)},
    statistics=("hour", "click"),
)
WHOLE = replace(CONTRACT, dataset="silver.whole", partitioning=None)
LETTERS = declared("silver.letters", "letter STRING NOT NULL, says STRING", key=("letter",))
"""Of what is merged."""


def clicks(spark: Any, rows: int = 100, first: int = 0, tasks: int | None = None) -> Any:
    """Rows of both hours, alternating; row n stands for 1 + n % 3 rows. Each task writes a file of each hour."""
    return spark.range(first, first + rows, numPartitions=tasks).selectExpr(
        f"if(id % 2 = 0, '{HOURS[0]}', '{HOURS[1]}') AS hour",
        "id AS click",
        "1 + id % 3 AS stands_for",
        "concat('/page', id % 5) AS page",
    )


def problems(lake: Lake, *contracts: Contract) -> list[str]:
    """Return what does not add up in the ledger of some tables."""
    lines = [line for contract in contracts for line in ledger.audit(lake, EventLog(lake), contract)]
    return [f"{line.entry.dataset} {line.entry.partition}: {line.problem}" for line in lines if line.problem]


def accounts(rows: int = 100) -> Mapping[str, Account]:
    """The account of :func:`clicks` that its input layer would have, counted in plain Python."""
    return {
        hour: Account(rows_in=sum(1 + n % 3 for n in range(rows) if n % 2 == parity))
        for parity, hour in enumerate(HOURS)
    }


def copies_of(
    make: Callable[[Any, Path], object], opened: Callable[[Any, Path], object] = lambda spark, root: root
) -> Any:
    """A fixture: a lake that is made once, in a folder, and copied for each test, as `opened` opens it."""
    origin = list[Path]()

    @pytest.fixture
    def root(spark: Any, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Any:
        if not origin:
            folder = tmp_path_factory.mktemp("origin") / "lake"
            folder.mkdir()
            make(spark, folder)
            origin.append(folder)
        return opened(spark, shutil.copytree(origin[0], tmp_path / "copy"))

    return root


def target(root: Path, run: str = "run-1", contract: Contract = CONTRACT, **more: Any) -> Target:
    return Target(lake=Lake(root=str(root)), contract=contract, run=run_context(run), **more)


def merged(changes: Any, aim: Target, provenance: Provenance) -> Commit:
    """Merge changes into the newest version of a table, which is created before if it does not exist."""
    from blogdata.patterns.idempotency.merger import merge

    tables.enforce(changes.sparkSession, aim.lake, aim.contract)
    return merge(changes, aim, provenance, at=aim.lake.version(aim.contract.dataset) or 0)


def run_context(run: str) -> RunContext:
    return RunContext(run_id=run, job="tests", code_version="v1")


def step(spark: Any, root: Path, contract: Contract, *periods: str, run: str) -> Step:
    from blogdata.runs.lake_resource import DeploymentResource, LakeResource
    from blogdata.runs.step import Step

    access = LakeResource(root=str(root), landing=str(root / "landing"))
    home = DeploymentResource(home=str(root))
    return Step(
        contract=contract, partitions=periods, spark=spark, access=access, deployment=home, run=run_context(run)
    )


def table(spark: Any, root: Path, dataset: str = "silver.clicks") -> list[tuple[Any, ...]]:
    rows = Lake(root=str(root)).read(spark, dataset).collect()
    return sorted(tuple(row) for row in rows)


def resting(root: Path, dataset: str = "silver.clicks", version: int | None = None) -> list[tuple[Any, ...]]:
    """Return all rows of a table, sorted, without Spark, which would plan a query for each look."""
    opened = Lake(root=str(root)).caught_up(dataset)
    assert opened is not None
    if version is not None:
        opened.load_as_version(version)
    names = ", ".join(f'"{field.name}"' for field in opened.schema().fields)
    return sorted(tuple(row.values()) for row in arrow.select(opened, f"SELECT {names} FROM t"))
