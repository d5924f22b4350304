"""Each fact stands in one row: a device is renamed in one row of one table, and all page views show it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from blogdata.patterns.storage import normalizer
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from quality.contracts import CONTRACTS
from quality.contracts.visits_model import KEYS, STAR_HOSTS, VIEWS
from storage import modelled as weeks
from storage.modelled import NORMALIZED, TABLES, first_named, named_devices, rows_of

__all__ = ("deploy",)


@pytest.fixture(scope="module")
def modelled(deploy: Deploy) -> Deployment:
    return weeks.modelled(deploy, "modelled")


def test_no_column_says_what_another_one_says() -> None:
    contracts = [CONTRACTS[name] for name in TABLES]
    said = [column.name for one in contracts for column in one.columns if column.name not in one.identity]
    assert len(said) == len(set(said)) == 4, "views, device_name, site and kind"


@pytest.mark.campaign
def test_a_renamed_device_is_one_row(modelled: Deployment, deploy: Deploy) -> None:
    after = weeks.renamed(deploy, "renamed")
    names, versions, device = named_devices(modelled), modelled.versions(), first_named(modelled)
    before = rows_of(modelled, NORMALIZED, *KEYS, "device_name", "views")
    assert named_devices(after) == {**names, device: "Renamed"}
    assert [after.versions()[name] - versions[name] for name in (VIEWS, STAR_HOSTS)] == [0, 0]
    place = len(KEYS)
    assert rows_of(after, NORMALIZED, *KEYS, "device_name", "views") == {
        (*row[:place], "Renamed" if row[place - 2 : place] == device else row[place], row[-1]): count
        for row, count in before.items()
    }


def test_facts_about_what_is_unknown_are_not_dropped(spark: Any) -> None:
    facts = spark.createDataFrame([("a", True), ("b", False), (None, False)], "device STRING, known BOOLEAN")
    referring = normalizer.refer(facts, key=["device"], known="known", unknown="unknown")
    assert Counter(row.device for row in referring.collect()) == {"a": 1, "unknown": 2}
    assert referring.join(normalizer.entity(referring, key=["device"]), on="device").count() == 3
    reference = normalizer.entity(facts.where("known"), key=["device"])
    assert facts.join(reference, on="device").count() == 1, "what an inner join leaves of three page views"
