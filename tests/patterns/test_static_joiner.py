from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.contract.publication import WHOLE_TABLE, Account
from blogdata.patterns.data_value import static_joiner
from blogdata.patterns.idempotency.data_overwrite import overwrite_table
from blogdata.table.faults import AuditFailed
from blogdata.table.target import Provenance
from plans import plan_of
from toy import declared, target

FACTS = "fact INT, user_id STRING, at TIMESTAMP"
VERSIONS = "user_id STRING, login STRING, valid_from TIMESTAMP, valid_to TIMESTAMP"


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=timezone.utc).replace(tzinfo=None)


def facts(spark: Any, *days: int | None, user: str | None = "u") -> Any:
    rows = [(n, user, None if number is None else day(number)) for n, number in enumerate(days)]
    return spark.createDataFrame(rows, FACTS)


def versions(spark: Any, *ranges: tuple[str, int | None, int | None]) -> Any:
    rows = [("u", login, start and day(start), end and day(end)) for login, start, end in ranges]
    return spark.createDataFrame(rows, VERSIONS)


def joined(facts_: Any, versions_: Any) -> Any:
    ends = {"at": "at", "valid_from": "valid_from", "valid_to": "valid_to"}
    return static_joiner.join_as_of(facts_, versions_, ("user_id",), **ends, matched="known")


def test_a_boundary_fact_gets_the_version_that_begins(spark: Any) -> None:
    history = versions(spark, ("old", 1, 5), ("new", 5, None))
    rows = joined(facts(spark, 1, 4, 5, 9), history).orderBy("fact").collect()
    assert [(row.login, row.known) for row in rows] == [("old", True)] * 2 + [("new", True)] * 2
    assert rows[2].valid_from == day(5)
    # Ranges that are closed at both ends double it.
    naive = facts(spark, 5).join(history, "user_id").where("at >= valid_from AND (valid_to IS NULL OR at <= valid_to)")
    assert naive.count() == 2
    of_nobody = spark.createDataFrame([(None, "x", day(1), None)], VERSIONS)
    assert [row.known for row in joined(facts(spark, 2, user=None), of_nobody).collect()] == [False]


def test_the_account_refuses_a_doubled_fact(spark: Any, tmp_path: Path) -> None:
    history = versions(spark, ("old", 1, 7), ("new", 5, 20))
    into = target(tmp_path, contract=declared("silver.joined", "fact INT, login STRING, known BOOLEAN"))
    rows = joined(facts(spark, 2, 6), history).select("fact", "login", "known")
    with pytest.raises(AuditFailed, match=r"account\.accounted.*found 3.*expected 2"):
        overwrite_table(rows, into, Provenance(accounts={WHOLE_TABLE: Account(rows_in=2)}))


@pytest.mark.usefixtures("usual_plans")
def test_small_reference_data_is_broadcast_without_moving_facts(spark: Any) -> None:
    many = spark.range(10).select(F.col("id").cast("string").alias("user_id"), F.current_timestamp().alias("at"))
    plan = plan_of(joined(many, versions(spark, ("a", 1, None))))
    assert "BroadcastHashJoin" in plan
    assert "hashpartitioning" not in plan
