"""Counts of few visitors do not tell a country that their visits hide. Pattern: Fine-Grained Accessor for Tables."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.contract.contract import Contract
from blogdata.contract.privacy import visible
from blogdata.deliver.query import offer_masks
from blogdata.operate.config import Settings
from blogdata.patterns.security.fine_grained_accessor_for_tables import (
    LEAST_VISITORS,
    Role,
    Shown,
    restricted,
    sight_of,
)
from quality.contracts.audience import AUDIENCE_HOURLY, VISITORS
from quality.contracts.page_views import VISITS_CUBE_DAILY, VISITS_CUBE_WEEKLY

ALONE, MANY = "2026-01-05T04", "2026-01-05T09"
GROUPS = {
    (ALONE, "all", "all"): 1,
    (ALONE, "country", "JP"): 1,
    (ALONE, "page", "/post"): 1,
    (MANY, "all", "all"): LEAST_VISITORS + 4,
    (MANY, "country", "DE"): LEAST_VISITORS,
    (MANY, "country", "JP"): LEAST_VISITORS - 1,
    (MANY, "country", "US"): LEAST_VISITORS + 1,
    (MANY, "page", "/post"): LEAST_VISITORS - 1,
}


@pytest.fixture(scope="module")
def audience(spark: Any) -> Any:
    """Sketches of as many visitors as each group has."""
    groups = spark.createDataFrame([(*group, number) for group, number in GROUPS.items()], "event_hour STRING, "
        "dimension STRING, value STRING, number INT")  # fmt: skip
    visitors = groups.withColumn("user_id", F.explode(F.sequence(F.lit(1), "number").cast("array<string>")))
    counted = visitors.groupBy("event_hour", "dimension", "value")
    return counted.agg(F.count("*").alias("events"), F.hll_sketch_agg("user_id").alias(VISITORS.name)).localCheckpoint()


def groups(audience: Any, role: Role) -> set[tuple[str, str, str]]:
    seen = restricted(audience, AUDIENCE_HOURLY, role).select("event_hour", "dimension", "value").collect()
    return {(row.event_hour, row.dimension, row.value) for row in seen}


@pytest.mark.parametrize("role", Role)
def test_a_country_of_few_is_shown_only_to_who_sees_that_of_a_visit(
    spark: Any, settings: Settings, audience: Any, role: Role
) -> None:
    offer_masks(spark, settings)
    few = {group for group, number in GROUPS.items() if number < LEAST_VISITORS}
    # All less the others would tell how often the few came.
    smallest = {(MANY, "country", "DE")}
    countries = {group for group in GROUPS if group[1] == "country"}
    hidden = {Role.OWNER: set(), Role.PARTNER: few | smallest}.get(role, few & countries)
    assert groups(audience, role) == GROUPS.keys() - hidden


@pytest.mark.parametrize("role", [Role.ENGINEER, Role.ANALYST])
def test_the_cube_hides_the_countries_and_no_page_view(spark: Any, settings: Settings, role: Role) -> None:
    """Most groups are of few visitors: without them, a role that sees no countries would sum too few page views."""
    offer_masks(spark, settings)
    rows = [("2026-01-05", "phone", name, users, users) for name, users in (("JP", 1), ("DE", 7), ("unknown", 2))]
    types = "event_date STRING, device_type STRING, country STRING, events BIGINT, users BIGINT"
    cube = spark.createDataFrame(rows, types)
    seen = [row.asDict() for row in restricted(cube, VISITS_CUBE_DAILY, role).collect()]
    assert sum(row["events"] for row in seen) == 10
    assert not {row.get("country") for row in seen} & {"JP", "DE", "unknown"}


@pytest.mark.parametrize("contract", [VISITS_CUBE_DAILY, VISITS_CUBE_WEEKLY], ids=lambda contract: contract.dataset)
def test_who_sees_the_countries_of_the_cube_sees_that_of_a_visit(contract: Contract) -> None:
    sights = {role: sight.columns for role in Role if (sight := sight_of(contract, role)) is not None}
    assert sights.keys() == set(Role)
    assert {role: shown["country"] for role, shown in sights.items() if "country" in shown} == {
        Role.OWNER: Shown.AS_IT_IS,
        Role.ENGINEER: Shown.HASHED,
    }
    assert "country" not in visible(contract)
