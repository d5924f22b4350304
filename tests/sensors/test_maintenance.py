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
def tick(tmp_path: Path, instance: dg.DagsterInstance, defs: dg.Definitions) -> Any:
    access = LakeResource(root=str(tmp_path / "lake"), landing=str(tmp_path / "landing"))

    def evaluate() -> Any:
        context = dg.build_sensor_context(instance=instance, definitions=defs, resources={"lake": access})
        return maintenance.evaluate_tick(context)

    return evaluate


def append(root: Path, times: int) -> None:
    for _ in range(times):
        rows = pa.table({"event_hour": ["2026-01-05T10"], "visit_id": ["v"]})
        path = LakeResource(root=str(root / "lake"), landing="").lake.path(VISITS.dataset)
        write_deltalake(path, rows, mode="append", partition_by=["event_hour"])


def test_tables_with_many_small_files_at_rest_are_asked_for(
    tmp_path: Path, tick: Any, launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tick().skip_message == "every table is tidy"
    append(tmp_path, MANY)
    assert tick().skip_message == "every table is tidy", "rows are still added"
    monkeypatch.setattr(compactor, "AT_REST", timedelta(0))
    assert len(launched(tick())) == 1
    assert tick().skip_message == "what waits has been asked for"
    append(tmp_path, 1)
    assert len(tick().run_requests) == 1, "another state of the files"
