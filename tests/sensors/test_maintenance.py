"""The maintenance is requested when the statistics in a table's log ask for it, and decided without Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.ingestion import compactor
from blogdata.patterns.ingestion.compactor import MANY
from quality.contracts.live import VISITS
from sensors.maintenance import tables_scattered

maintenance = tables_scattered()


@pytest.fixture
def access(tmp_path: Path) -> LakeResource:
    return LakeResource(root=str(tmp_path / "lake"), landing=str(tmp_path / "landing"))


@pytest.fixture
def tick(access: LakeResource, instance: dg.DagsterInstance, defs: dg.Definitions) -> Any:
    def evaluate() -> Any:
        context = dg.build_sensor_context(instance=instance, definitions=defs, resources={"lake": access})
        return maintenance.evaluate_tick(context)

    return evaluate


def append(access: LakeResource, times: int) -> None:
    for _ in range(times):
        rows = pa.table({"event_hour": ["2026-01-05T10"], "visit_id": ["v"]})
        write_deltalake(access.lake.path(VISITS.dataset), rows, mode="append", partition_by=["event_hour"])


def damage(access: LakeResource) -> None:
    """Cut off the log of a table that is looked at before the others."""
    log = Path(access.lake.path("bronze.visits")) / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text('{"commitInfo"')


def test_tables_with_many_small_files_at_rest_are_asked_for(
    access: LakeResource, tick: Any, launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tick().skip_message == "every table is tidy"
    append(access, MANY)
    assert tick().skip_message == "every table is tidy", "rows are still added"
    monkeypatch.setattr(compactor, "AT_REST", timedelta(0))
    assert len(launched(tick())) == 1
    assert tick().skip_message == "what waits has been asked for"
    append(access, 1)
    assert len(tick().run_requests) == 1, "another state of the files"


def test_a_damaged_log_keeps_no_other_table_from_being_asked_for(
    access: LakeResource, tick: Any, launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(access)
    assert tick().skip_message == "every table is tidy", "no run can do anything about it"
    append(access, MANY)
    monkeypatch.setattr(compactor, "AT_REST", timedelta(0))
    assert len(launched(tick())) == 1
