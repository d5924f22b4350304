from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from blogdata.contract.contract import Contract
from blogdata.contract.schema import RowRule
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.quality.constraints_enforcer import orphans
from blogdata.table.audit import specify
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.tables import constraints, enforce
from blogdata.table.target import Provenance
from quality.contracts import CONTRACTS
from toy import declared, target

ORDERS = declared(
    "silver.orders",
    "day STRING NOT NULL, id BIGINT NOT NULL, at TIMESTAMP, amount BIGINT",
    key=("id",),
    by="day",
    rules=(
        RowRule(name="positive", expression="amount > 0", description="An order has an amount"),
        RowRule(name="small", expression="amount < 1000", description="Large orders go elsewhere"),
    ),
)
DAY, *OTHERS = ORDERS.columns
GENERATED = replace(ORDERS, columns=(replace(DAY, generated="date_format(at, 'yyyy-MM-dd')"), *OTHERS))
ROWS = "day STRING, id BIGINT, at TIMESTAMP, amount BIGINT"


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=CONTRACTS)
def test_audits_have_all_that_the_table_enforces(contract: Contract) -> None:
    """Files are committed without Delta's writer, which would enforce it."""
    counted = set(specify(contract, (), {}, {}).violations.values())
    conditions = [f"count_if(not coalesce({sql}, false))" for sql in constraints(contract).values()]
    required = [f"count_if(`{column.name}` is null)" for column in contract.columns if not column.nullable]
    assert counted >= {*conditions, *required}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def test_the_table_refuses_what_breaks_its_contract(spark: Any, lake: Lake) -> None:
    enforce(spark, lake, GENERATED)
    path, at = lake.path(ORDERS.dataset), "timestamp'2026-01-05 10:00:00' AS at"
    for columns, fault in (
        (f"CAST(NULL AS BIGINT) AS id, {at}, 5L AS amount", "NOT_NULL_CONSTRAINT"),
        (f"1L AS id, {at}, CAST(NULL AS BIGINT) AS amount", "DELTA_VIOLATE_CONSTRAINT"),
        (f"1L AS id, {at}, 5L AS amount, '2020-01-01' AS day", "Generated Column"),
        (f"1L AS id, {at}, 5L AS amount", None),
    ):
        plain = spark.sql(f"SELECT {columns}").write.format("delta").mode("append")
        with nullcontext() if fault is None else pytest.raises(PySparkException, match=fault):
            plain.save(path)
    assert lake.columns(ORDERS.dataset, ["day"])["day"].to_pylist() == ["2026-01-05"], "computed from the time"
    # A dropped constraint is restored before the next write.
    spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT positive")
    enforce(spark, lake, GENERATED)
    table = lake.caught_up(ORDERS.dataset)
    assert table is not None
    assert table.metadata().configuration["delta.constraints.positive"] == "amount > 0"


def test_audit_lists_all_violations_with_their_counts(spark: Any, lake: Lake) -> None:
    rows = [("2026-01-05", 1, None, -1), ("2026-01-05", 1, None, 5000), ("2026-01-05", None, None, None)]
    aim = target(Path(lake.root), contract=ORDERS)
    with pytest.raises(AuditFailed) as refused:
        overwrite_partitions(spark.createDataFrame(rows, ROWS), aim, ["2026-01-05"], Provenance())
    counts = {violation.rule: violation.found for violation in refused.value.violations}
    assert counts == {"positive": 2, "small": 2, "not_null.id": 1, "unique.id": 1}


def test_orphans_are_found_and_null_references_ignored(spark: Any) -> None:
    facts = spark.createDataFrame([(1, "a", 1), (2, "a", 2), (3, "x", 1), (4, None, 1)], "n INT, t STRING, v INT")
    dimension = spark.createDataFrame([("a", 1), ("a", 1), ("b", 2)], "type STRING, version INT")
    on = {"t": "type", "v": "version"}
    assert sorted(row["n"] for row in orphans(facts, dimension, on).collect()) == [2, 3]
