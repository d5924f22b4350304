"""Dagster metadata of freezing and of retention, on the blog's own datasets.

Patterns: Fast Metadata Cleaner, Proxy.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from assets.gold.page_views import ENRICHED_VISITS
from assets.gold.visits_weekly import frozen_years
from blogdata.contract.publication import Account
from blogdata.contract.writes import ByPeriod, Copy
from blogdata.patterns.idempotency.fast_metadata_cleaner import replace_periods, visible
from blogdata.privacy import retention
from blogdata.runs.lake_resource import LakeResource
from blogdata.table import expiry, members
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext, Target
from published import publish
from quality.contracts import CONTRACTS, EVERY

WEEKLY = CONTRACTS["gold.visits_weekly"]
WEEKS = ("2023-12-11", "2023-12-18", "2025-12-15", "2025-12-22", "2026-04-13")
LATER = ("user_bucket",)
BEFORE = replace(
    WEEKLY,
    columns=tuple(column for column in WEEKLY.columns if column.name not in LATER),
    rules=tuple(rule for rule in WEEKLY.rules if not any(name in rule.expression for name in LATER)),
    statistics=(),
    buckets=None,
    audits=(),
    measures={},
    parts=None,
)


@pytest.fixture(scope="module")
def home(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five weeks of page views, four of them final; the first lacks buckets."""
    home = tmp_path_factory.mktemp("home")
    lake = Lake(root=str(home / "lake"))
    values = {
        "event_week": "week",
        "event_time": "CAST(concat(week, 'T12:00:00Z') AS TIMESTAMP)",
        "keep_private": "FALSE",
        "user_id": "if(week = '2025-12-15', 'ann', 'bob')",
        "user_bucket": "if(week = '2025-12-15', 3, 60)",
        "user_known": "FALSE",
        "hours_present": "168",
    }
    columns = [f"CAST({values.get(one.name, repr(one.name))} AS {one.type}) AS {one.name}" for one in WEEKLY.columns]
    for contract, weeks in ((BEFORE, WEEKS[:1]), (WEEKLY, WEEKS[1:])):
        frame = spark.createDataFrame([(week,) for week in weeks], "week STRING").selectExpr(*columns)
        run = RunContext(run_id=f"of {weeks[0]}", job="tests", code_version="c1")
        accounts = {week: Account(rows_in=1) for week in weeks}
        replace_periods(frame, Target(lake=lake, contract=contract, run=run), weeks, Provenance(accounts=accounts))
    publish(lake, ENRICHED_VISITS, "event_hour", {f"{week}T12": 1 for week in WEEKS})
    return home


def test_retention_covers_every_dataset_of_several_tables() -> None:
    several = {name for name, contract in EVERY.items() if isinstance(contract.write, Copy | ByPeriod)}
    assert {"bronze.devices", "gold.visits_weekly"} <= several == set(retention.KEPT)
    assert retention.KEPT["bronze.devices"] == timedelta(days=EVERY["bronze.devices"].retention_days)


def materialize(asset: dg.AssetsDefinition, home: Path, spark: Any) -> Any:
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [asset],
            resources={
                "spark": dg.ResourceDefinition.hardcoded_resource(SimpleNamespace(guard=partial(nullcontext, spark))),
                "lake": LakeResource(root=str(home / "lake"), landing=str(home / "landing")),
            },
            instance=instance,
        )
        (event,) = result.get_asset_materialization_events()
        return event.materialization.metadata


@pytest.mark.campaign
def test_final_years_are_frozen_and_replaced_tables_removed(
    home: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(root=str(home / "lake"))
    shown = materialize(frozen_years, home, spark)
    assert (shown["frozen_now"].value, shown["rows_frozen_now"].value) == ("2023: 2 weeks, 2025: 2 weeks", 4)
    assert [record.data["table"] for record in shown["view"].records] == ["2023", "2025", "2026-04-13"]
    counted = "2025: 2, of whom 0 had come in the year before"
    assert shown["visitors_frozen_now"].value == f"2023: visitors not counted, its log states no buckets; {counted}"
    assert lake.row_counts(WEEKLY.dataset, "event_week") == dict.fromkeys(WEEKS, 1)
    weeks = lake.columns(WEEKLY.dataset, ["event_week", "hours_present"]).to_pydict()
    assert dict(zip(*weeks.values(), strict=True)) == dict.fromkeys(WEEKS, 168)
    assert materialize(frozen_years, home, spark)["frozen_now"].value == "nothing"

    assert retention.copies(lake)["copies_removed"] == 0
    late = datetime.now(timezone.utc) + retention.KEPT[WEEKLY.dataset] + timedelta(hours=1)
    remove = expiry.remove
    monkeypatch.setattr(expiry, "remove", lambda lake, name, keep: remove(lake, name, keep=keep, now=late))
    removed = retention.copies(lake)
    assert removed["copies_removed"] == 4
    assert removed["bytes_of_copies"] > 0
    assert lake.row_counts(WEEKLY.dataset, "event_week") == dict.fromkeys(WEEKS, 1)
    folder = lake.folder(members.table_of(WEEKLY.dataset, ""))
    assert folder is not None
    assert sorted(found.name for found in folder.iterdir()) == sorted(
        one.location for one in visible(lake, WEEKLY.dataset)
    )
