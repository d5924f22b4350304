"""One Big Table has the rows of the normalized tables, and no column that answers no question."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from assets.gold import visits_model
from blogdata.contract.contract import ANSWERS
from blogdata.contract.schema import Column
from blogdata.errors import ConfigurationError
from blogdata.patterns.storage import denormalizer
from blogdata.patterns.storage.denormalizer import Dimension
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from patterns import modelled as weeks
from patterns.modelled import NEXT_WEEK, NORMALIZED, OBT, WEEK, first_named, named_devices, rows_of
from plans import plan_of
from quality.contracts import CONTRACTS, EVERY
from quality.contracts.visits_model import DEVICE, STAR_HOSTS, VIEWS
from tools import contract_pages

__all__ = ("deploy",)

BIG = CONTRACTS[OBT]
COLUMNS = tuple(column.name for column in BIG.columns)
EVERYTHING = f"SELECT * FROM {OBT}"


@pytest.fixture(scope="module")
def modelled(deploy: Deploy) -> Deployment:
    return weeks.modelled(deploy, "denormalized")


@pytest.fixture(scope="module")
def renamed(deploy: Deploy) -> Deployment:
    return weeks.renamed(deploy, "renamed")


def test_both_models_of_a_few_page_views_have_the_same_rows(spark: Any) -> None:
    told = "event_week STRING, event_hour STRING, page STRING, referral_host STRING, browser STRING"
    hour = f"{WEEK}T10"
    visits = [
        (WEEK, hour, "/a", "www.google.com", "Firefox", "phone", "1", True),
        (WEEK, hour, "/a", "www.google.com", "Firefox", "phone", "1", True),
        (WEEK, hour, None, "blog.example", None, "tablet", "9", False),
        (NEXT_WEEK, f"{NEXT_WEEK}T11", "/b", None, "Lynx", None, None, False),
    ]
    of_visits = f"{told}, device_type STRING, device_version STRING, device_known BOOLEAN"
    counted = visits_model.views(spark.createDataFrame(visits, of_visits))
    names = [("phone", "1", "Phone", "2026-01-01"), ("phone", "1", "Renamed", "2026-01-02")]
    reference = spark.createDataFrame(
        names, "device_type STRING, device_version STRING, full_name STRING, changed_on STRING"
    )
    devices, hosts = visits_model.devices(counted, reference), visits_model.hosts(counted)
    known = [Dimension(rows=hosts, key=["referral_host"]), Dimension(rows=devices, key=DEVICE)]
    big, of_facts = denormalizer.flatten(counted, BIG, known), counted.join(devices, [*DEVICE])
    found, joined = (
        Counter(map(tuple, frame.select(*COLUMNS).collect())) for frame in (big, of_facts.join(hosts, "referral_host"))
    )
    assert joined == found
    named = {(row[COLUMNS.index("page")], row[COLUMNS.index("device_name")], row[-1]) for row in found}
    assert named == {("/a", "Renamed", 2), ("unknown", None, 1), ("/b", None, 1)}


@pytest.mark.campaign
def test_a_renamed_device_rewrites_the_weeks_that_show_it(modelled: Deployment, renamed: Deployment) -> None:
    before, after = modelled.published(OBT), renamed.published(OBT)
    assert {key for key, entry in after.items() if entry.version != before[key].version} == {WEEK}
    assert before.keys() == {WEEK, NEXT_WEEK}
    found = rows_of(renamed, EVERYTHING, *COLUMNS)
    assert found == rows_of(renamed, NORMALIZED, *COLUMNS)
    assert {row[COLUMNS.index("device_name")] for row in found} >= {"Renamed"}
    # In the normalized model it is one row of one table.
    names, versions, device = named_devices(modelled), modelled.versions(), first_named(modelled)
    assert named_devices(renamed) == {**names, device: "Renamed"}
    assert [renamed.versions()[name] - versions[name] for name in (VIEWS, STAR_HOSTS)] == [0, 0]


def test_a_column_that_answers_no_question_is_refused() -> None:
    idle = Column(name="network_type", type="BIGINT", description="Could be of use some day")
    with pytest.raises(ConfigurationError, match="no question needs these columns: network_type") as refused:
        replace(BIG, columns=(*BIG.columns, idle))
    assert (refused.value.where, "answers" in refused.value.next_step) == (OBT, True)
    asked = replace(idle, answers="How many pages are read on a slow network?")
    assert replace(BIG, columns=(*BIG.columns, asked)).columns[-1] == asked
    page = contract_pages.render([BIG])
    assert all(f"answers: {column.answers}" in page for column in BIG.columns)
    assert {name for name, contract in EVERY.items() if ANSWERS in contract.patterns} == {OBT}


def test_no_table_of_a_model_has_a_person() -> None:
    models = [one for one in CONTRACTS.values() if {"Normalizer", "Denormalizer"} & {*one.patterns}]
    assert len(models) == 4
    assert [column.name for one in models for column in one.columns if column.of_a_person or column.personal] == []


def test_dimensions_are_sent_to_the_facts_and_no_fact_is_lost(spark: Any) -> None:
    facts = spark.createDataFrame(
        [(kind, "1", views) for kind, views in (("a", 1), ("b", 2))], "t STRING, v STRING, n INT"
    )
    names = spark.createDataFrame([("a", "1", "A")], "t STRING, v STRING, name STRING")
    columns = tuple(Column(name=name, type="INT", description="", answers="?") for name in ("t", "n", "name"))
    flat = denormalizer.flatten(facts, replace(BIG, columns=columns), [Dimension(rows=names, key=("t", "v"))])
    assert sorted(map(tuple, flat.collect())) == [("a", 1, "A"), ("b", 2, None)]
    assert "BroadcastHashJoin" in plan_of(flat)
