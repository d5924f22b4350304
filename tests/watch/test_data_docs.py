from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pyarrow as pa
from deltalake import write_deltalake

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Audit, Classification, Column, Partitioning, RowRule
from blogdata.runs.lake_resource import LakeResource
from blogdata.watch.data_docs import DataDocsConfig, check_name, data_docs, page
from blogdata.watch.expectations import Project, suite
from quality.contracts import CONTRACTS

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
BAD = [
    ("2026-01-05", 1, "canary-one@x", 0.5, None, None),
    ("2026-01-05", 1, "{canary-two", 0.9, None, None),
    ("2026-01-06", 3, None, 1.0, None, None),
]
LETTERS = CONTRACTS["bronze.ad_dead_letters"]


def test_a_doubled_row_warns_and_stops_nothing(spark: Any, tmp_path: Path) -> None:
    lake = LakeResource(root=str(tmp_path / "lake"), landing=str(tmp_path / "landing"))
    rows: dict[str, list[Any]] = {"source_offset": [0, 0, 1], "arrival_hour": ["2026-01-05T10"] * 3}
    rows |= {"raw": [b"canary"] * 3, "source_file": ["ads/a.json"] * 3, "reasons": [["not_json"]] * 3}
    write_deltalake(lake.lake.path(LETTERS.dataset), pa.table(rows), partition_by=["arrival_hour"])
    session = dg.ResourceDefinition.hardcoded_resource(SimpleNamespace(guard=partial(nullcontext, spark)))
    config = dg.RunConfig(ops={"ops__data_docs": DataDocsConfig(newest=0)})
    result = dg.materialize([data_docs], resources={"spark": session, "lake": lake}, run_config=config)
    assert result.success
    (broken,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert (broken.check_name, broken.severity) == (check_name(LETTERS.dataset), dg.AssetCheckSeverity.WARN)
    promises = len(suite(LETTERS).expectations)
    kept = f"{promises - 1} of {promises} promises kept; broken: unique.source_file+source_offset (2)"
    assert broken.description == kept
    (event,) = result.asset_materializations_for_node("ops__data_docs")
    assert (event.metadata["datasets"].value, event.metadata["broken"].value) == (1, 1)
    index = Path(str(event.metadata["index"].value))
    assert index == tmp_path / "data_docs" / "index.html"
    assert (LETTERS.dataset in index.read_text(), "canary" in index.read_text()) == (True, False)


def test_every_promise_of_the_contract_has_one_expectation() -> None:
    columns = "type.day not_null.day type.id not_null.id type.email not_null.email type.share type.tags type.home"
    rules = [expectation.meta["rule"] for expectation in suite(ACCOUNTS).expectations]
    assert rules == ["columns", *columns.split(), "unique.id", "no_brace", "looks_right", "adds_up"]


def test_each_broken_promise_has_its_count_and_an_error_quotes_no_value(spark: Any) -> None:
    raising = RowRule(name="number", expression="cast(email AS INT) > 0", description="An address is a number")
    contract = replace(ACCOUNTS, rules=(*ACCOUNTS.rules, raising))
    found = Project().validate(spark.createDataFrame(BAD, ROWS), contract)
    assert {one.rule: one.violations for one in found if not one.passed and one.error is None} == {
        "not_null.email": 1,
        "unique.id": 2,
        "no_brace": 2,
        "looks_right": 2,
        "adds_up": 1,
    }
    (error,) = [one for one in found if one.error]
    assert error.rule == "number"
    assert str(error.error).startswith("[CAST_INVALID_INPUT] The value '\N{HORIZONTAL ELLIPSIS}' of the type")
    text = page({ACCOUNTS.dataset: found})
    assert "looks_right (2)" in text
    assert "An address has an at sign" in text
    assert "number: [CAST_INVALID_INPUT" in text
    assert not [word for word in ("None", "canary", "http") if word in text]
