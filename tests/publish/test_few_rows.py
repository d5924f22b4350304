"""Spark generates no code and plans in one job for few rows, not for many, and a configured mode is never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

import plans
from blogdata.lake.commit import Account
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.idempotency.merger import merge
from blogdata.publish.kept_rows import computed
from blogdata.publish.target import Provenance
from laws.stepping import Held, Probe
from toy import CONTRACT, HOURS, WHOLE, accounts, clicks, resting, target

MODE = "spark.sql.codegen.factoryMode"
ADAPTIVE, PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
ROWS = 4
MANY = 10_000
MEBIBYTES = "array_join(transform(sequence(1, 100000), n -> sha2(cast(n AS string), 256)), '')"
"""What no compression makes small."""
PAGES = replace(WHOLE, breakdowns={})


def many() -> Mapping[str, Account]:
    return {
        key: Account(rows_in=account.rows_in + MANY, reasons={"left_out": MANY})
        for key, account in accounts(ROWS).items()
    }


def task_setting(setting: str = MODE) -> Column:
    """Build a column of the setting that tasks see."""

    # Nested, because Spark's workers cannot import the tests.
    def of(_):  # type: ignore[no-untyped-def]  # Spark would take hints for those of Arrow.
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        return task.getLocalProperty(setting)

    return F.udf(of, "string")("click")


def seen(session: Any, root: Path, run: str, given: Mapping[str, Account]) -> set[str | None]:
    """Publish rows whose tasks record these settings."""
    rows = clicks(session, ROWS).withColumn("page", task_setting())
    overwrite_partitions(rows, target(root, run), HOURS, Provenance(accounts=given))
    return {page for *_, page in resting(root)}


def overwrite(session: Any, root: Path, run: str, page: Column, *, dimension: Any = None, rows: int = ROWS) -> None:
    """Publish a few rows, joined with a dimension if one is given; their accounts say how many rows come in."""
    given = clicks(session, ROWS).withColumn("page", page)
    if dimension is not None:
        given = given.join(dimension.select("click").distinct(), on="click", how="left").select(*given.columns)
    accounted = accounts(ROWS) if rows == ROWS else many()
    overwrite_partitions(given, target(root, run), HOURS, Provenance(accounts=accounted))


def put(session: Any, root: Path, run: str, page: Column, *, click: int = 0, rows_in: int = 1) -> None:
    """Merge a click into a table that then represents this many rows."""
    change = clicks(session, 1, click).withColumn("page", page)
    account = {"": Account(rows_in=rows_in)}
    merge(change, target(root, run, contract=PAGES), Provenance(accounts=account), deleted=None)


@pytest.mark.campaign
def test_code_is_generated_for_many_rows_only(session: Any, lake_root: Path) -> None:
    default = session.conf.get(MODE)
    assert seen(session, lake_root, "few", accounts(ROWS)) == {"NO_CODEGEN"}
    assert session.conf.get(MODE) == default
    assert seen(session, lake_root, "many", many()) == {None}
    assert seen(session, lake_root, "who knows", {}) == {None}


@pytest.mark.campaign
def test_merges_into_large_tables_generate_code(session: Any, lake_root: Path) -> None:
    put(session, lake_root, "first", F.lit("one row"))
    put(session, lake_root, "small", task_setting())
    assert {page for *_, page in resting(lake_root, PAGES.dataset)} == {"NO_CODEGEN"}
    put(session, lake_root, "large", F.expr(MEBIBYTES), click=1, rows_in=3)
    put(session, lake_root, "after it", task_setting(), rows_in=3)
    assert {page for _, click, _, page in resting(lake_root, PAGES.dataset) if click == 0} == {None}


def test_few_rows_are_planned_in_one_job(session: Any, lake_root: Path) -> None:
    few = {MODE: "NO_CODEGEN", ADAPTIVE: "false", PARTITIONS: "1"}
    plans.configure(session, plans.AS_IN_PRODUCTION)
    usual = {setting: session.conf.get(setting) for setting in few}
    settings = F.concat_ws(" ", *(F.coalesce(task_setting(setting), F.lit("none")) for setting in few))
    overwrite(session, lake_root, "few", settings)
    assert {page for *_, page in resting(lake_root)} == {" ".join(few.values())}
    assert {setting: session.conf.get(setting) for setting in few} == usual
    assert all(usual[setting] != few[setting] for setting in few)
    overwrite(session, lake_root, "many", settings, rows=MANY)
    (seen_by_many,) = {tuple(page.split()) for *_, page in resting(lake_root)}
    assert all(value in ("none", usual[setting]) for setting, value in zip(few, seen_by_many, strict=True))


@pytest.mark.campaign
def test_few_rows_joined_with_a_large_table_are_planned_as_usual(session: Any, lake_root: Path) -> None:
    put(session, lake_root, "large", F.expr(MEBIBYTES))
    large = Lake(root=str(lake_root)).read(session, PAGES.dataset)
    overwrite(session, lake_root, "with large", task_setting(), dimension=large)
    assert {page for *_, page in resting(lake_root)} == {None}


@pytest.mark.campaign
def test_many_rows_beside_few_are_planned_as_usual(session: Any, lake_root: Path, tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")
    beside = replace(CONTRACT, dataset="silver.beside")

    def few() -> None:
        rows = clicks(session, ROWS).withColumn("page", task_setting())
        goal = target(lake_root, "few", contract=beside, probe=str(probe.folder))
        overwrite_partitions(rows, goal, HOURS, Provenance(accounts=accounts(ROWS)))

    default = session.conf.get(MODE)
    with Held(few, probe, "opened") as held:
        assert session.conf.get(MODE) == "NO_CODEGEN"
        overwrite(session, lake_root, "many", task_setting(), rows=MANY)
        assert {page for *_, page in resting(lake_root)} == {None}
    assert held.error is None
    assert {page for *_, page in resting(lake_root, beside.dataset)} == {"NO_CODEGEN"}
    assert session.conf.get(MODE) == default


@pytest.mark.matrix(100)
@pytest.mark.parametrize(("of", "mode"), [(ROWS, "NO_CODEGEN"), (MANY + 1, None), (None, None)])
def test_kept_rows_are_computed_like_written_ones(session: Any, of: int | None, mode: str | None) -> None:
    with computed(clicks(session, ROWS).withColumn("page", task_setting()), of=of) as kept:
        assert {row.page for row in kept.collect()} == {mode}


def test_a_refused_write_restores_the_setting(session: Any, lake_root: Path) -> None:
    default = session.conf.get(MODE)
    with pytest.raises(Exception, match="account"):
        seen(session, lake_root, "wrong", {HOURS[0]: Account(rows_in=1)})
    assert session.conf.get(MODE) == default


@pytest.mark.campaign
def test_a_configured_codegen_mode_is_left_alone(session: Any, lake_root: Path) -> None:
    session.conf.set(MODE, "CODEGEN_ONLY")
    assert seen(session, lake_root, "few", accounts(ROWS)) == {"CODEGEN_ONLY"}
    assert session.conf.get(MODE) == "CODEGEN_ONLY"
