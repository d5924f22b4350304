"""Rows lost, doubled or changed in computation or storage: the ledger reports them, and nothing is published."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.contract.contract import Contract
from blogdata.landing.lines import LineReader
from blogdata.runs.landed_inputs import Landed
from blogdata.runs.step import FullDelivery, Step
from blogdata.table import members
from blogdata.table.target import Companion
from declared import OF_COMPLETE_WEEKS, OF_ENDED_WEEKS
from lineage.conftest import Deploy
from lineage.deployment import Deployment, module
from lineage.origins import THREE_HOURS, three_hours
from quality.contracts import CONTRACTS, GRAPH

LAST = THREE_HOURS[-1]
ACCOUNTED = "account.accounted"
FILLED = {name: contract for name, contract in CONTRACTS.items() if name not in {"gold.visits_shared", *OF_ENDED_WEEKS}}
"""The datasets that have rows in three hours of few visitors."""
ASKED_FOR = OF_COMPLETE_WEEKS & FILLED.keys()
"""Those of them that a person has to ask for, since no week is complete."""
Spoil = Callable[[DataFrame], DataFrame]


def unrelated() -> list[list[str]]:
    """Group the datasets so that none is computed from or beside another one of its group; small groups first."""
    depths, groups = dict[str, int](), defaultdict[tuple[int, int], list[str]](list)
    for task in GRAPH.tasks:
        depth = 1 + max((depths[name] for name in GRAPH.upstream(task.datasets)), default=0)
        depths |= dict.fromkeys(task.datasets, depth)
        # Computed again, the places write no row: they add what is new.
        for number, name in enumerate(name for name in task.datasets if name in FILLED.keys() - {"silver.places"}):
            groups[depth, number].append(name)
    return sorted(groups.values(), key=len)


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Three published hours; the last one has rows in every table that is computed without being asked for."""
    return deploy.published("defects", three_hours)


@pytest.fixture(scope="module")
def whole(deployment: Deployment) -> Deployment:
    """The same deployment, after a person has asked for the rest."""
    assert deployment.replay("gold.visits_snowflake_views", *deployment.published("gold.visits_weekly")).problems == []
    assert [name for name in ASKED_FOR if not deployment.contents_of(name)] == []
    return deployment


def without_one(frame: DataFrame) -> DataFrame:
    """Remove one row; none if there is none, as in partitions that are left when one was refused."""
    digest = F.xxhash64(*frame.columns)
    victim = frame.agg(F.min(digest)).collect()[0][0]
    return frame if victim is None else frame.where(digest != victim)


def with_one_twice(frame: DataFrame) -> DataFrame:
    return frame.unionByName(frame.limit(1))


def spoil_writes(patch: pytest.MonkeyPatch, datasets: Sequence[str], spoil: Spoil) -> None:
    """Let steps compute the right rows, and change them before they are written."""
    publish = Step.publish

    def rows_of(contract: Contract, rows: Any) -> Any:
        if contract.dataset not in datasets:
            return rows
        if callable(rows):
            return lambda day: in_order(rows(day))
        if isinstance(rows, FullDelivery):
            return in_order(rows)
        # A column that replaces another one is not computed yet.
        return spoil(rows.select(*[column.name for column in contract.columns if column.name in rows.columns]))

    def in_order(delivery: FullDelivery) -> FullDelivery:
        return replace(delivery, rows=lambda before: spoil(delivery.rows(before)))

    def spoiled(step: Step, rows: Any, source: Any = None, *, companions: Sequence[Companion] = ()) -> Any:
        beside = [replace(companion, frame=rows_of(companion.contract, companion.frame)) for companion in companions]
        return publish(step, rows_of(step.contract, rows), source, companions=beside)

    patch.setattr(Step, "publish", spoiled)


def refused(deployment: Deployment, rules: Mapping[str, str], known: Sequence[str] = ()) -> None:
    """Run datasets again for the last hour; check that each is refused by its rule and that the lake is unchanged."""
    before, rows = deployment.versions(), {dataset: deployment.contents_of(dataset) for dataset in rules}
    problems = deployment.run(select=[*rules], hours=(LAST, LAST)).problems
    for dataset, rule in rules.items():
        check = f"check {dataset.replace('.', '/')}:{'ledger' if rule.startswith('account.') else 'contract'} failed"
        assert [problem for problem in problems if problem.startswith(check)], (dataset, problems)
        assert [problem for problem in problems if rule in problem], (dataset, problems)
    assert {dataset: deployment.contents_of(dataset) for dataset in rules} == rows
    # Their companions are unchanged, but may have been published again.
    own = dict.fromkeys([*rules, *(CONTRACTS[dataset].main for dataset in rules), "ops.events"], 0)
    assert {**deployment.versions(), **own} == {**before, **own}
    assert deployment.problems() == [*known]


def test_fixture_fills_every_table_and_ledger_balances(deployment: Deployment) -> None:
    assert [dataset for dataset in FILLED if dataset not in ASKED_FOR and not deployment.contents_of(dataset)] == []
    assert deployment.problems() == []
    healthy = CliRunner().invoke(app, ["ledger", "--json"], env={"BLOGDATA_HOME": str(deployment.settings.home)})
    assert healthy.exit_code == 0, healthy.output


@pytest.mark.matrix(32)
@pytest.mark.parametrize("datasets", unrelated(), ids="-".join)
def test_a_lost_row_stops_the_publication(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, datasets: list[str]
) -> None:
    if ASKED_FOR & {*datasets}:
        request.getfixturevalue("whole")
    spoil_writes(monkeypatch, datasets, without_one)
    # A figure of the report stands for no rows, unless it counts them.
    figures = {"gold.daily_report": "every_figure"}
    refused(deployment, {dataset: figures.get(dataset, ACCOUNTED) for dataset in datasets})


@pytest.mark.campaign
@pytest.mark.parametrize("dataset", ["bronze.visits", "silver.late_visits"])
def test_a_doubled_row_stops_the_publication(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:
    spoil_writes(monkeypatch, [dataset], with_one_twice)
    refused(deployment, {dataset: ACCOUNTED})


def test_a_lost_byte_stops_the_publication(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Landed.rows

    def shortened(landed: Landed, reader: LineReader) -> DataFrame:
        raw = F.when(F.col("source_offset") == 0, F.expr("substring(raw, 2)")).otherwise(F.col("raw"))
        return rows(landed, reader).withColumn("raw", raw)

    monkeypatch.setattr(Landed, "rows", shortened)
    refused(deployment, {"bronze.visits": "account.file"})


@pytest.mark.campaign
def test_a_deduplicator_miscounting_occurrences_is_noticed(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deduplicator = module("blogdata.patterns.error_management.windowed_deduplicator")
    deduplicate = deduplicator.deduplicate

    def forgetful(*given: Any, **named: Any) -> DataFrame:
        once = F.col("occurrences") - (F.col("occurrences") > 1).cast("bigint")
        found: DataFrame = deduplicate(*given, **named)
        return found.withColumns({"occurrences": once, "conflicts": F.lit(0).cast("bigint")})

    monkeypatch.setattr(deduplicator, "deduplicate", forgetful)
    refused(deployment, {"silver.visits": ACCOUNTED})


@pytest.fixture(scope="module")
def damaged(whole: Deployment, spark: Any) -> Deployment:
    """The same deployment, after somebody has deleted a row of every table outside the platform."""
    for dataset, contract in FILLED.items():
        path = whole.lake.path(dataset)
        if members.is_pointer(DeltaTable(path)):
            # A copy refuses the deletion; what can be deleted is the pointer row that makes it visible.
            spark.sql(f"DELETE FROM delta.`{path}` WHERE visible_until IS NULL")
            continue
        digest = f"xxhash64({', '.join(column.name for column in contract.columns)})"
        victim = spark.sql(f"SELECT min({digest}) FROM delta.`{path}`").collect()[0][0]
        spark.sql(f"DELETE FROM delta.`{path}` WHERE {digest} = {victim}")
    return whole


@pytest.mark.campaign
def test_ledger_reports_externally_deleted_rows_of_every_table(damaged: Deployment) -> None:
    problems = damaged.problems()
    assert sorted(problem.split(" ", 1)[0] for problem in problems) == sorted(FILLED)
    assert all("were published but" in problem for problem in problems)
    broken = CliRunner().invoke(app, ["ledger", "--json"], env={"BLOGDATA_HOME": str(damaged.settings.home)})
    assert broken.exit_code == 1
    found = {line["dataset"] for line in json.loads(broken.stdout) if not line["balanced"]}
    assert found == set(FILLED)


@pytest.mark.campaign
def test_damage_stops_readers_and_a_rerun_mends_it(damaged: Deployment) -> None:
    known = damaged.problems()
    assert len(known) == len(FILLED)
    refused(damaged, {"gold.page_stats": ACCOUNTED}, known)
    outcome = damaged.run(hours=("2026-01-05", "2026-01-05"))
    # What is looked up is not looked up again: a lost address stays named, and the others as they are.
    assert {problem.split(":", 1)[0] for problem in outcome.problems} == {"check silver/places", "silver.places"}
    assert [problem.split(" ", 1)[0] for problem in damaged.problems()] == ["silver.places"]
