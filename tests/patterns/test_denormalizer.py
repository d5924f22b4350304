from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from assets.gold import visits_model
from blogdata.contract.contract import ANSWERS
from blogdata.contract.schema import Column
from blogdata.errors import ConfigurationError
from blogdata.patterns.storage import denormalizer
from plans import plan_of
from quality.contracts import CONTRACTS, EVERY
from quality.contracts.visits_model import DEVICE
from tools import contract_pages

WEEK, NEXT_WEEK = "2026-01-05", "2026-01-12"
OBT = "gold.visits_obt"
BIG = CONTRACTS[OBT]
COLUMNS = tuple(column.name for column in BIG.columns)


def test_both_models_of_a_few_page_views_have_the_same_rows(spark: Any) -> None:
    hour = f"{WEEK}T10"
    visits = [
        (WEEK, hour, "/a", "www.google.com", "Firefox", "phone", "1", True),
        (WEEK, hour, "/a", "www.google.com", "Firefox", "phone", "1", True),
        (WEEK, hour, None, "blog.example", None, "tablet", "9", False),
        (NEXT_WEEK, f"{NEXT_WEEK}T11", "/b", None, "Lynx", None, None, False),
    ]
    texts = ("event_week", "event_hour", "page", "referral_host", "browser", *DEVICE)
    ddl = f"{', '.join(f'{name} STRING' for name in texts)}, device_known BOOLEAN"
    counted = visits_model.views(spark.createDataFrame(visits, ddl))
    names = [("phone", "1", "Phone", "2026-01-01"), ("phone", "1", "Renamed", "2026-01-02")]
    reference = spark.createDataFrame(names, [*DEVICE, "full_name", "changed_on"])
    devices, hosts = visits_model.devices(counted, reference), visits_model.hosts(counted)
    known = [(hosts, ["referral_host"]), (devices, DEVICE)]
    flat = denormalizer.flatten(counted, BIG, known)
    joined = counted.join(devices, [*DEVICE]).join(hosts, "referral_host")
    assert plan_of(flat).count("BroadcastHashJoin") >= 2, "dimensions are sent to the facts"
    big, normalized = (Counter(map(tuple, frame.select(*COLUMNS).collect())) for frame in (flat, joined))
    assert big == normalized
    named = {(row[COLUMNS.index("page")], row[COLUMNS.index("device_name")], row[-1]) for row in big}
    assert named == {("/a", "Renamed", 2), ("unknown", None, 1), ("/b", None, 1)}


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
    models = [contract for contract in CONTRACTS.values() if {"Normalizer", "Denormalizer"} & {*contract.patterns}]
    columns = [column for contract in models for column in contract.columns]
    assert (len(models), [column for column in columns if column.of_a_person or column.personal]) == (4, [])
