"""Deterministic costs of a run, step by step: Spark's jobs, requests, rows, files, commits, events."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import deltalake
import pytest
from pyspark.sql.connect.client import SparkConnectClient

from blogdata.operate import dagster_home
from lineage.deployment import Deployment

RECORDED = Path(__file__).with_suffix(".json")
BESIDE = "beside the steps"
TOLERATED = 1.05
"""Spark does a job more now and then (a state of a table's log that it no longer has is computed again), and bytes
differ since what is written has ids and times in it. What the platform asks for (requests, commits, files) is exact."""
JOBS = {"jobs", "stages", "tasks"}
"""Compared step by step, at most two more."""
READ = {"rows_read", "bytes_read", "bytes_written"}
"""Compared run by run, since a job more reads a log."""
Costs = dict[str, dict[str, int]]
"""Counts of a run by step; what no step did is under :data:`BESIDE`."""
_JOB_EVENTS = tuple(f'{{"Event":"SparkListener{name}"' for name in ("JobStart", "JobEnd", "StageCompleted"))
_METRICS = {
    "internal.metrics.input.recordsRead": "rows_read",
    "internal.metrics.input.bytesRead": "bytes_read",
    "internal.metrics.output.recordsWritten": "rows_written",
    "internal.metrics.output.bytesWritten": "bytes_written",
}
"""Spark's accumulators of a stage, and what they are called here."""
_STARTED, _ENDED = (
    dg.DagsterEventType.STEP_START,
    (
        dg.DagsterEventType.STEP_SUCCESS,
        dg.DagsterEventType.STEP_FAILURE,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A counted operation and its time in seconds since the epoch."""

    at: float
    counts: dict[str, int]


@dataclass(kw_only=True)
class Counting:
    """Counts this process's requests to Spark, and its reads of Delta logs."""

    began: float = field(default_factory=time.time)
    moments: list[Moment] = field(default_factory=list)

    def add(self, **counts: int) -> None:
        self.moments.append(Moment(at=time.time(), counts=counts))


@contextmanager
def counting() -> Iterator[Counting]:
    """Count while a run is executed in this process."""
    counted = Counting()
    execute, open_table = SparkConnectClient._execute_and_fetch, deltalake.DeltaTable.__init__

    def executed(*arguments, **options):  # type: ignore[no-untyped-def]
        result = execute(*arguments, **options)
        counted.add(requests=1, rows_collected=0 if result[0] is None else result[0].num_rows)
        return result

    def opened(*arguments, **options):  # type: ignore[no-untyped-def]
        counted.add(log_reads=1)
        open_table(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkConnectClient, "_execute_and_fetch", executed)
        patch.setattr(deltalake.DeltaTable, "__init__", opened)
        yield counted


def of_newest_run(deployment: Deployment, counted: Counting, jobs: Path) -> Costs:
    """Compute the costs of a deployment's newest run."""
    with deployment.session() as spark:
        session = f"_Session_{spark.session_id}_"
    steps, events = _steps(deployment)
    costs: dict[str, Counter[str]] = {name: Counter() for name in (*steps, BESIDE)}
    for moment in [*counted.moments, *_jobs(jobs, session), *_commits(deployment), *events]:
        if moment.at >= counted.began:
            step = next((name for name, (start, end) in steps.items() if start <= moment.at <= end), BESIDE)
            costs[step].update(moment.counts)
    return {name: dict(sorted((+counts).items())) for name, counts in costs.items()}


def _jobs(folder: Path, session: str) -> Iterator[Moment]:
    """Read the jobs of a session in Spark's event logs, with the stages that each was the first to need."""
    for file in folder.iterdir():
        jobs: dict[int, Moment] = {}
        job_of: dict[int, int] = {}
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n") or not line.startswith(_JOB_EVENTS):
                continue
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                if session in event["Properties"].get("spark.job.tags", ""):
                    jobs[event["Job ID"]] = Moment(at=event["Submission Time"] / 1000, counts={"jobs": 1})
                for stage in event["Stage IDs"]:
                    job_of.setdefault(stage, event["Job ID"])
            elif event["Event"] == "SparkListenerJobEnd":
                job_of = {stage: job for stage, job in job_of.items() if job != event["Job ID"]}
            elif (job := jobs.get(job_of.pop(event["Stage Info"]["Stage ID"], -1))) is not None:
                stage = event["Stage Info"]
                found = {one["Name"]: int(one["Value"]) for one in stage["Accumulables"] if one["Name"] in _METRICS}
                figures = {"stages": 1, "tasks": stage["Number of Tasks"]}
                figures |= {name: found.get(metric, 0) for metric, name in _METRICS.items()}
                for name, figure in figures.items():
                    job.counts[name] = job.counts.get(name, 0) + figure
        yield from jobs.values()


def _commits(deployment: Deployment) -> Iterator[Moment]:
    for file in deployment.settings.lake.rglob("_delta_log/*.json"):
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        (at,) = [action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action]
        added = [action["add"] for action in actions if "add" in action]
        yield Moment(
            at=at / 1000,
            counts={
                "commits": 1,
                "files_added": len(added),
                "files_removed": sum("remove" in action for action in actions),
                "rows_added": sum(json.loads(one["stats"])["numRecords"] for one in added if one.get("stats")),
            },
        )


def _steps(deployment: Deployment) -> tuple[dict[str, tuple[float, float]], list[Moment]]:
    """Find when each step of the newest run began and ended, and when its events were stored."""
    with dagster_home.open_instance(deployment.settings) as instance:
        (record,) = instance.get_run_records(limit=1)
        logged = [entry for entry in instance.all_logs(record.dagster_run.run_id) if entry.is_dagster_event]
    found: dict[str, tuple[float, float]] = {}
    for entry in logged:
        event = entry.get_dagster_event()
        if event.step_key is not None and event.event_type == _STARTED:
            found[event.step_key] = (entry.timestamp, entry.timestamp)
        elif event.step_key is not None and event.event_type in _ENDED:
            found[event.step_key] = (found[event.step_key][0], entry.timestamp)
    return found, [Moment(at=entry.timestamp, counts={"dagster_events": 1}) for entry in logged]


def raised(found: dict[str, Costs], *, now: Path) -> dict[str, list[str]]:
    """List the costs by run that are higher than recorded, before and after.

    They are written to `now`; copy it over :data:`RECORDED` to accept higher counts on purpose.
    """
    now.write_text(_text(found), encoding="utf-8")
    known = json.loads(RECORDED.read_text(encoding="utf-8"))
    lines = {run: _more(found[run], known[run]) for run in found}
    return {run: [*each, f"on purpose? cp {now} {RECORDED}"] for run, each in lines.items() if each}


def _text(found: dict[str, Costs]) -> str:
    """Write costs as JSON, a step a line."""
    steps = {
        run: [f"{json.dumps(step)}: {json.dumps(counts)}" for step, counts in of.items()] for run, of in found.items()
    }
    runs = [f"{json.dumps(run)}: {{\n" + ",\n".join(lines) + "\n}" for run, lines in steps.items()]
    return "{\n" + ",\n".join(runs) + "\n}\n"


def _more(found: Costs, known: Costs) -> list[str]:
    lines = []
    for step, counts in found.items():
        recorded = known.get(step, {})
        for name, count in counts.items():
            before = recorded.get(name, 0)
            if name not in READ and count > before + (2 if name in JOBS and before else 0):
                lines.append(f"{step}, {name}: {before} -> {count}")
    for name in sorted(JOBS | READ):
        before, count = (sum(counts.get(name, 0) for counts in each.values()) for each in (known, found))
        if count > before * TOLERATED:
            lines.append(f"all steps, {name}: {before} -> {count}")
    return lines
