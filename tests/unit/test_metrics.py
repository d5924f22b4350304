"""Metrics repeat the ledger, the contracts and the files, in a format that Prometheus parses."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from blogdata.ledger.events import EventLog
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.runs.lake_resource import LakeResource
from blogdata.watch.metrics import registry
from published import bronze, deployment, devices, publish
from quality.contracts import EVERY, GRAPH

NOW = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path / "home")


def figures(lake: LakeResource) -> dict[tuple[str, ...], float]:
    """Parse metrics as Prometheus does: name and label values to figure."""
    look = Snapshot(lake.landing_zone, EventLog(lake.lake))
    found = Observed(graph=GRAPH, look=look, now=NOW)
    text = generate_latest(registry(found)).decode()
    return {
        (sample.name.removeprefix("blogdata_"), *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_figures_repeat_the_ledger(lake: LakeResource) -> None:
    hours = {"2026-01-05T08": {"2026-01-05T08": 5}, "2026-01-05T09": {"2026-01-05T09": 4}}
    read = {"bronze.visits": bronze(lake.lake, hours)}
    devices(lake.lake, "2026-01-05")
    account = {"2026-01-05T08": {"rows_in": 5, "reasons": {"duplicates": 2}}}
    hour = {"2026-01-05T08": 3}
    publish(lake.lake, "silver.visits", "event_hour", hour, inputs=read, seconds=7.0, accounts=account)
    found = figures(lake)
    assert found["dataset_rows_left_out", "silver.visits", "duplicates"] == 2
    assert found["dataset_info", "bronze.visits", "team:platform"] == 1
    assert found["dataset_partitions", "bronze.visits"] == 2
    assert (found["dataset_rows_in", "bronze.visits"], found["dataset_rows_out", "bronze.visits"]) == (9, 9)
    assert found["dataset_newest_partition_end_timestamp_seconds", "bronze.visits"] == NOW.timestamp() - 2 * 3600
    assert found["dataset_age_seconds", "bronze.visits"] == 2 * 3600
    promise = EVERY["bronze.visits"].freshness_hours
    assert promise is not None
    assert found["dataset_promised_age_seconds", "bronze.visits"] == (1 + promise) * 3600
    assert found["dataset_last_run_seconds", "silver.visits"] == pytest.approx(7.0, abs=1.0)
    assert found["dataset_files", "bronze.visits"] == 2
    written = sum(file.stat().st_size for file in Path(lake.root).glob("bronze/visits/**/*.parquet"))
    assert found["dataset_bytes", "bronze.visits"] == written
    # A table without partitions has no newest partition.
    assert ("dataset_age_seconds", "bronze.devices") not in found
    assert found["dataset_unaccounted_partitions", "bronze.devices"] == 0
