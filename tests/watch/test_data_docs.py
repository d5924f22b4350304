from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Audit, Classification, Column, Partitioning, RowRule
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.runs.lake_resource import LakeResource
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from blogdata.watch.data_docs import DataDocsConfig, check_name, data_docs, page
from blogdata.watch.expectations import Project, suite
from quality.contracts import CONTRACTS
from toy import target

ACCOUNTS = Contract(
    dataset="silver.accounts",
    description="Accounts",
    owner="team:shop",
    columns=(
        Column(name="day", type="STRING", nullable=False, description="Day"),
        Column(name="id", type="BIGINT", nullable=False, description="Identifier"),
        Column(
            name="email", type="STRING", nullable=False, classification=Classification.PERSONAL, description="Address"
        ),
        Column(name="share", type="DOUBLE", description="Share of the day"),
        Column(name="tags", type="ARRAY<STRING>", description="Tags"),
        Column(
            name="home",
            type="STRUCT<town: STRING, at: STRUCT<north: DECIMAL(9, 6), east: DECIMAL(9, 6)>, since: DATE>",
            description="Where it is",
        ),
    ),
    key=("id",),
    partitioning=Partitioning(column="day", grain=Grain.DAY),
    rules=(
        RowRule(name="no_brace", expression="email NOT LIKE '{%'", description="An address is no object"),
        RowRule(name="looks_right", expression="email RLIKE '^[^@]{1,64}@'", description="An address has an at sign"),
    ),
    audits=(Audit(name="adds_up", expression="abs(sum(share) - 1) < 0.001", description="The shares add up"),),
)
ROWS = ", ".join(f"{column.name} {column.type}" for column in ACCOUNTS.columns)
GOOD = [
    ("2026-01-05", 1, "a@x", 0.5, ["t"], None),
    ("2026-01-05", 2, "b@x", 0.5, None, None),
    ("2026-01-06", 1, "c@x", 1.0, None, None),
]
BAD = [
    ("2026-01-05", 1, "canary-one@x", 0.5, None, None),
    ("2026-01-05", 1, "{canary-two", 0.9, None, None),
    ("2026-01-06", 3, None, 1.0, None, None),
]
LATE = CONTRACTS["silver.late_visits"]
HOURS = ("2026-01-05T10", "2026-01-05T11")


def late_rows(spark: Any) -> Any:
    values = {
        "arrival_hour": "hour",
        "event_hour": "'2026-01-05T08'",
        "event_time": "timestamp'2026-01-05 08:59:00'",
        "keep_private": "true",
        "watermark": "timestamp'2026-01-05 09:00:00'",
        "lateness_seconds": "60",
        "raw": "'canary'",
        "source_file": "concat('visits/', hour, '.json')",
        "source_offset": "0",
    }
    columns = [f"cast({values[column.name]} AS {column.type}) AS {column.name}" for column in LATE.columns]
    return spark.createDataFrame([(hour,) for hour in HOURS], "hour STRING").selectExpr(*columns)


@pytest.fixture(scope="module")
def home(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one dataset, in whose older hour somebody doubled a row outside the platform."""
    home = tmp_path_factory.mktemp("home")
    lake = Lake(root=str(home / "lake"))
    overwrite_partitions(late_rows(spark), target(Path(lake.root), contract=LATE), HOURS, Provenance())
    doubled = lake.read(spark, LATE.dataset).where(f"arrival_hour = '{HOURS[0]}'")
    doubled.write.format("delta").mode("append").save(lake.path(LATE.dataset))
    return home


def test_a_doubled_row_warns_and_stops_nothing(spark: Any, home: Path) -> None:
    lake = LakeResource(root=str(home / "lake"), landing=str(home / "landing"))
    session = dg.ResourceDefinition.hardcoded_resource(SimpleNamespace(guard=partial(nullcontext, spark)))
    resources = {"spark": session, "lake": lake}
    config = dg.RunConfig(ops={"ops__data_docs": DataDocsConfig(newest=0)})
    result = dg.materialize([data_docs], resources=resources, run_config=config)
    assert result.success
    (broken,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert (broken.check_name, broken.severity) == (check_name(LATE.dataset), dg.AssetCheckSeverity.WARN)
    assert "unique.source_file+source_offset (2)" in str(broken.description)
    (event,) = result.asset_materializations_for_node("ops__data_docs")
    assert event.metadata["datasets"].value == 1
    assert event.metadata["broken"].value == 1
    index = Path(str(event.metadata["index"].value))
    assert index == home / "data_docs" / "index.html"
    assert LATE.dataset in index.read_text()
    assert not any("canary" in page.read_text() for page in index.parent.rglob("*.html"))


def test_every_promise_of_the_contract_has_one_expectation() -> None:
    columns = "type.day not_null.day type.id not_null.id type.email not_null.email type.share type.tags type.home"
    rules = [expectation.meta["rule"] for expectation in suite(ACCOUNTS).expectations]
    assert rules == ["columns", *columns.split(), "unique.id", "no_brace", "looks_right", "adds_up"]


def test_rows_that_keep_every_promise_pass(spark: Any) -> None:
    found = Project().validate(spark.createDataFrame(GOOD, ROWS), ACCOUNTS)
    assert [one for one in found if not one.passed] == []


def test_each_broken_promise_has_its_count_and_an_error_quotes_no_value(spark: Any) -> None:
    unknown = RowRule(name="unknown", expression="no_such_column > 1", description="A column that nobody has")
    raising = RowRule(name="number", expression="cast(email AS INT) > 0", description="An address is a number")
    contract = replace(ACCOUNTS, rules=(*ACCOUNTS.rules, unknown, raising))
    found = Project().validate(spark.createDataFrame(BAD, ROWS), contract)
    assert {one.rule: one.violations for one in found if not one.passed and one.error is None} == {
        "not_null.email": 1,
        "unique.id": 2,
        "no_brace": 2,
        "looks_right": 2,
        "adds_up": 1,
    }
    errors = {one.rule: one.error for one in found if one.error}
    assert errors.keys() == {"unknown", "number"}
    assert str(errors["unknown"]).startswith("[UNRESOLVED_COLUMN")
    assert str(errors["number"]).startswith("[CAST_INVALID_INPUT] The value '\N{HORIZONTAL ELLIPSIS}' of the type")
    text = page({ACCOUNTS.dataset: found})
    assert "looks_right (2)" in text
    assert "An address has an at sign" in text
    assert "unknown: [UNRESOLVED_COLUMN" in text
    assert not [word for word in ("None", "canary", "http") if word in text]
