from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.runs.lake_resource import LakeResource
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from blogdata.watch.data_docs import DataDocsConfig, check_name, data_docs
from quality.contracts import CONTRACTS
from toy import target

LATE = CONTRACTS["silver.late_visits"]
HOURS = ("2026-01-05T10", "2026-01-05T11")


def late_rows(spark: Any) -> Any:
    values = {
        "arrival_hour": "hour",
        "event_hour": "'2026-01-05T08'",
        "event_time": "timestamp'2026-01-05 08:59:00'",
        "keep_private": "true",
        "watermark": "timestamp'2026-01-05 09:00:00'",
        "lateness_seconds": "60",
        "raw": "'canary'",
        "source_file": "concat('visits/', hour, '.json')",
        "source_offset": "0",
    }
    columns = [f"cast({values[column.name]} AS {column.type}) AS {column.name}" for column in LATE.columns]
    return spark.createDataFrame([(hour,) for hour in HOURS], "hour STRING").selectExpr(*columns)


@pytest.fixture(scope="module")
def home(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one dataset, in whose older hour somebody doubled a row outside the platform."""
    home = tmp_path_factory.mktemp("home")
    lake = Lake(root=str(home / "lake"))
    overwrite_partitions(late_rows(spark), target(Path(lake.root), contract=LATE), HOURS, Provenance())
    doubled = lake.read(spark, LATE.dataset).where(f"arrival_hour = '{HOURS[0]}'")
    doubled.write.format("delta").mode("append").save(lake.path(LATE.dataset))
    return home


def test_a_doubled_row_warns_and_stops_nothing(spark: Any, home: Path) -> None:
    lake = LakeResource(root=str(home / "lake"), landing=str(home / "landing"))
    session = dg.ResourceDefinition.hardcoded_resource(SimpleNamespace(guard=partial(nullcontext, spark)))
    resources = {"spark": session, "lake": lake}
    config = dg.RunConfig(ops={"ops__data_docs": DataDocsConfig(newest=0)})
    result = dg.materialize([data_docs], resources=resources, run_config=config)
    assert result.success
    (broken,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert (broken.check_name, broken.severity) == (check_name(LATE.dataset), dg.AssetCheckSeverity.WARN)
    assert "unique.source_file+source_offset (2)" in str(broken.description)
    (event,) = result.asset_materializations_for_node("ops__data_docs")
    assert event.metadata["datasets"].value == 1
    assert event.metadata["broken"].value == 1
    index = Path(str(event.metadata["index"].value))
    assert index == home / "data_docs" / "index.html"
    assert LATE.dataset in index.read_text()
    assert not any("canary" in page.read_text() for page in index.parent.rglob("*.html"))
