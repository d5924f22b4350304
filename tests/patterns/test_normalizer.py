"""Each fact stands in one row: a device is renamed in one row of one table, and all page views show it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from blogdata.patterns.storage import normalizer
from lineage.conftest import deploy
from patterns.modelled import TABLES
from quality.contracts import CONTRACTS

__all__ = ("deploy",)


def test_no_column_says_what_another_one_says() -> None:
    contracts = [CONTRACTS[name] for name in TABLES]
    said = [column.name for one in contracts for column in one.columns if column.name not in one.identity]
    assert len(said) == len(set(said)) == 4, "views, device_name, site and kind"


def test_facts_about_what_is_unknown_are_not_dropped(spark: Any) -> None:
    facts = spark.createDataFrame([("a", True), ("b", False), (None, False)], "device STRING, known BOOLEAN")
    referring = normalizer.refer(facts, key=["device"], known="known", unknown="unknown")
    assert Counter(row.device for row in referring.collect()) == {"a": 1, "unknown": 2}
    assert referring.join(normalizer.entity(referring, key=["device"]), on="device").count() == 3
    reference = normalizer.entity(facts.where("known"), key=["device"])
    assert facts.join(reference, on="device").count() == 1, "what an inner join leaves of three page views"
