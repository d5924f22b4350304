"""Deterministic costs of a run: Spark's jobs, requests, rows, files, commits, events."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import deltalake
import pytest
from pyspark.sql.connect.client import SparkConnectClient

from blogdata.operate import dagster_home
from lineage.deployment import Deployment

RECORDED = Path(__file__).with_suffix(".json")
TOLERATED = 1.05
"""Spark does a job more now and then (a state of a table's log that it no longer has is computed again), and bytes
differ since what is written has ids and times in it. What the platform asks for (requests, commits, files) is exact."""
NEARLY = {"jobs", "stages", "tasks", "rows_read", "bytes_read", "bytes_written"}
"""Compared with that tolerance."""
_JOB_EVENTS = tuple(f'{{"Event":"SparkListener{name}"' for name in ("JobStart", "JobEnd", "StageCompleted"))
_METRICS = {
    "internal.metrics.input.recordsRead": "rows_read",
    "internal.metrics.input.bytesRead": "bytes_read",
    "internal.metrics.output.recordsWritten": "rows_written",
    "internal.metrics.output.bytesWritten": "bytes_written",
}
"""Spark's accumulators of a stage, and what they are called here."""


@contextmanager
def counting(deployment: Deployment, jobs: Path) -> Iterator[Counter[str]]:
    """Count while a run is executed in this process."""
    costs, began = Counter[str](), time.time()
    execute, open_table = SparkConnectClient._execute_and_fetch, deltalake.DeltaTable.__init__

    def executed(*arguments, **options):  # type: ignore[no-untyped-def]
        result = execute(*arguments, **options)
        costs.update(requests=1, rows_collected=0 if result[0] is None else result[0].num_rows)
        return result

    def opened(*arguments, **options):  # type: ignore[no-untyped-def]
        costs.update(log_reads=1)
        open_table(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkConnectClient, "_execute_and_fetch", executed)
        patch.setattr(deltalake.DeltaTable, "__init__", opened)
        yield costs
    with deployment.session() as spark:
        session = f"_Session_{spark.session_id}_"
    for file in jobs.iterdir():
        costs.update(_jobs(file, session, began))
    for file in deployment.settings.lake.rglob("_delta_log/*.json"):
        costs.update(_commit(file, began))
    with dagster_home.open_instance(deployment.settings) as instance:
        (record,) = instance.get_run_records(limit=1)
        costs["dagster_events"] = sum(entry.is_dagster_event for entry in instance.all_logs(record.dagster_run.run_id))


def _jobs(file: Path, session: str, began: float) -> Counter[str]:
    """Count the jobs of a session in one of Spark's event logs, with the stages that each was the first to need."""
    costs, ours = Counter[str](), set[int]()
    job_of: dict[int, int] = {}
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n") or not line.startswith(_JOB_EVENTS):
            continue
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            tags = event["Properties"].get("spark.job.tags", "")
            if session in tags and event["Submission Time"] / 1000 >= began:
                ours.add(event["Job ID"])
                costs["jobs"] += 1
            for stage in event["Stage IDs"]:
                job_of.setdefault(stage, event["Job ID"])
        elif event["Event"] == "SparkListenerJobEnd":
            job_of = {stage: job for stage, job in job_of.items() if job != event["Job ID"]}
        elif job_of.pop(event["Stage Info"]["Stage ID"], -1) in ours:
            stage = event["Stage Info"]
            values = {
                metric["Name"]: int(metric["Value"]) for metric in stage["Accumulables"] if metric["Name"] in _METRICS
            }
            costs.update({_METRICS[name]: value for name, value in values.items()})
            costs.update(stages=1, tasks=stage["Number of Tasks"])
    return costs


def _commit(file: Path, began: float) -> dict[str, int]:
    actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    (at,) = [action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action]
    if at / 1000 < began:
        return {}
    added = [action["add"] for action in actions if "add" in action]
    return {
        "commits": 1,
        "files_added": len(added),
        "files_removed": sum("remove" in action for action in actions),
        "rows_added": sum(json.loads(add["stats"])["numRecords"] for add in added if add.get("stats")),
    }


def raised(costs: dict[str, Counter[str]], *, now: Path) -> list[str]:
    """List the costs by run that are higher than recorded, before and after.

    They are written to `now`; copy it over :data:`RECORDED` to accept higher counts on purpose.
    """
    runs = [f"{json.dumps(run)}: {json.dumps(dict(sorted(counts.items())))}" for run, counts in costs.items()]
    now.write_text("{\n" + ",\n".join(runs) + "\n}\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    lines = [
        f"{run}, {name}: {before} -> {count}"
        for run, counts in costs.items()
        for name, count in counts.items()
        if count > (before := recorded[run].get(name, 0)) * (TOLERATED if name in NEARLY else 1)
    ]
    return [*lines, f"on purpose? cp {now} {RECORDED}"] if lines else []
