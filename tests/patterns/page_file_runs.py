"""Runs of the job that writes page statistics to files, in a deployment without Spark."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from blogdata.deliver import page_files
from blogdata.patterns.data_flow.parallel_split import Writer
from published import deployment, publish
from sensors.refresh import write_page_files

DAY = "2026-01-05"
DAYS = dg.DailyPartitionsDefinition("2025-12-01", end_offset=500)
"""Days before, in and after the shadow phase, whenever the test runs."""
DATASET = page_files.SOURCE.dataset
PAGES = ("/", "/2022/01/how-spark-works", '/a;"b"', "/\u00fcber uns", "/line\nbreak")


class Files:
    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.access = deployment(home / "home")
        self.folder = page_files.folder_of(self.access)
        self.instance = instance
        self.definitions = dg.Definitions(
            assets=[page_files.page_files(DAYS)], jobs=[write_page_files], resources={"lake": self.access}
        )

    def publish(self, *days: str, views: int = 1) -> None:
        """Publish days of gold.page_stats, or publish them again with other counts."""
        table = self.access.lake.caught_up(DATASET)
        if table is not None:
            table.delete(" OR ".join(f"event_date = '{day}'" for day in days))
        total = sum(range(1, len(PAGES) + 1)) * views
        content = [
            {"event_date": day, "page": page, "events": number * views, "visits": number * views, "users": 1}
            | {"share": number * views / total, "hours_present": 24}
            for day in days
            for number, page in enumerate(PAGES, 1)
        ]
        rows = dict.fromkeys(days, len(PAGES))
        publish(self.access.lake, DATASET, "event_date", rows, content=pa.Table.from_pylist(content))

    def run(self, day: str) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_job_def(write_page_files.name)
        return job.execute_in_process(instance=self.instance, partition_key=day, raise_on_error=False)

    def due(self) -> list[str]:
        return [*page_files.due(self.access.lake, self.access.events, self.folder)]

    def file(self, writer: Writer, day: str = DAY) -> Path:
        return writer.path(self.folder, day)

    def receipt(self) -> Mapping[str, Any]:
        receipt: Mapping[str, Any] = json.loads((self.folder / "receipts" / f"date={DAY}.json").read_bytes())
        return receipt


def fault(run: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in run.all_events if event.event_type is dg.DagsterEventType.STEP_FAILURE]
    return str(event.step_failure_data.user_failure_data or event.step_failure_data.error)


def metadata(run: dg.ExecuteInProcessResult) -> Mapping[str, Any]:
    (event,) = run.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}
