"""Runs of the job that writes page statistics to files, in a deployment without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.serving.page_files import COMPARED, page_files
from blogdata.orchestration.split_files import shared_rows
from blogdata.patterns.data_flow import parallel_split
from blogdata.patterns.data_flow.parallel_split import Receipt
from blogdata.patterns.observability.reported_results import EXPORTS
from blogdata.publish.partitions import Grain
from published import deployment, publish
from sensors.page_files import page_files_due, write_page_files

DAY = "2026-01-05"
CALENDAR = {Grain.DAY: dg.DailyPartitionsDefinition("2025-12-01", end_offset=500)}
"""Days before, in and after the shadow phase, whenever the test runs."""
DATASET = page_files.contract.dataset
COLUMNS = pa.schema([("event_date", pa.string()), *COMPARED, ("hours_present", pa.int64())])
PAGES = ("/", "/2022/01/how-spark-works", '/a;"b"', "/\u00fcber uns", "/line\nbreak")


@dataclass(frozen=True)
class Run:
    """A completed run."""

    result: dg.ExecuteInProcessResult
    instance: dg.DagsterInstance

    @property
    def success(self) -> bool:
        return bool(self.result.success)

    @property
    def tags(self) -> Mapping[str, str]:
        run = self.instance.get_run_by_id(self.result.run_id)
        assert run is not None
        return run.tags

    def events(self, kind: dg.DagsterEventType) -> list[dg.DagsterEvent]:
        return [event for event in self.result.all_events if event.event_type is kind]

    def steps(self, kind: dg.DagsterEventType) -> set[str]:
        """List the names of the steps with this result, without the names of enclosing graphs."""
        found = (str(event.step_key).rpartition(".")[2] for event in self.events(kind))
        return {"compared" if name.endswith("_compared") else name for name in found}

    def materialized(self) -> set[str]:
        keys = [event.asset_key for event in self.result.get_asset_materialization_events()]
        return {key.path[-1].removeprefix("page_stats_") for key in keys if key is not None}

    def metadata(self, branch: str) -> Mapping[str, Any]:
        (found,) = [
            event.materialization.metadata
            for event in self.result.get_asset_materialization_events()
            if event.asset_key == page_files.asset_of(branch)
        ]
        return {name: value.value for name, value in found.items()}

    def faults(self) -> str:
        return "\n".join(
            str(event.step_failure_data.user_failure_data or event.step_failure_data.error)
            for event in self.events(dg.DagsterEventType.STEP_FAILURE)
        )

    def checks(self) -> list[tuple[bool, str | None]]:
        return [(each.passed, each.description) for each in self.result.get_asset_check_evaluations()]


class Files:
    """A lake with page statistics, and the editors' files."""

    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.access = deployment(home / "home")
        self.folder = self.access.landing_path.parent / EXPORTS / page_files.name
        self.instance = instance
        self.definitions = dg.Definitions(
            assets=page_files.assets(CALENDAR),
            jobs=[write_page_files],
            resources={"lake": self.access, "shared_rows": shared_rows},
        )

    def publish(self, *days: str, views: int = 1, pages: Sequence[str] = PAGES) -> None:
        """Publish days of gold.page_stats, or publish them again with other counts."""
        there = self.access.lake.caught_up(DATASET)
        if there is not None:
            there.delete(" OR ".join(f"event_date = '{day}'" for day in days))
        total = sum(range(1, len(pages) + 1)) * views
        rows = [
            {
                "event_date": day,
                "page": page,
                "events": number * views,
                "visits": number * views,
                "users": 1,
                "share": number * views / total,
                "hours_present": 24,
            }
            for day in days
            for number, page in enumerate(pages, 1)
        ]
        content = pa.Table.from_pylist(rows, schema=COLUMNS)
        publish(self.access.lake, DATASET, "event_date", dict.fromkeys(days, len(pages)), content=content)

    def run(self, day: str, *branches: str, resources: Mapping[str, Any] | None = None) -> Run:
        """Run the job for a day, or only some of its assets."""
        job = self.definitions.resolve_job_def("serving__page_stats_files")
        assets = [page_files.asset_of(branch) for branch in branches] or None
        result = job.execute_in_process(
            instance=self.instance,
            partition_key=day,
            asset_selection=assets,
            resources=resources,
            raise_on_error=False,
        )
        return Run(result, self.instance)

    def due(self) -> Mapping[str, list[str]]:
        return page_files.due(self.access.lake, self.access.events, page_files.folder(self.access))

    def asked(self) -> dict[str, list[str]]:
        """Return the branches that the sensor asks for, by day."""
        context = dg.build_sensor_context(
            instance=self.instance, definitions=self.definitions, resources={"lake": self.access}
        )
        data = page_files_due().evaluate_tick(context)
        return {
            str(request.partition_key): [
                key.path[-1].removeprefix("page_stats_") for key in request.asset_selection or ()
            ]
            for request in data.run_requests or ()
        }

    def file(self, branch: str, day: str) -> Path:
        (found,) = [each for each in page_files.branches if each.name == branch]
        return found.path(self.folder, day)

    def receipt(self, branch: str, day: str) -> Receipt | None:
        (found,) = [each for each in page_files.branches if each.name == branch]
        return parallel_split.receipt(found, self.folder, day)
