"""Backfills started as the UI starts them, and the run records that show how they were executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ui.served import Served

BACKFILL = "dagster/backfill"
UNFINISHED = ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING")
_LAUNCH = (
    "mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) { __typename "
    "... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"
)
_STATUS = "query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }"
_RUNS = (
    "query { runsOrError { ... on Runs { results "
    "{ runId jobName status creationTime startTime endTime tags { key value } } } } }"
)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run as Dagster recorded it; times in seconds since the epoch.

    Args:
        run_id: Its identifier.
        job: Name of its job.
        status: Its status.
        created: Time of its entry into the queue.
        started: When its process began to execute it.
        ended: When it ended.
        tags: Its tags.
    """

    run_id: str
    job: str
    status: str
    created: float
    started: float | None
    ended: float | None
    tags: Mapping[str, str]

    @property
    def waited(self) -> float:
        """Seconds between its request and its start, including the start of its process."""
        assert self.started is not None
        return self.started - self.created


def launch(served: Served, partitions: Sequence[str], *datasets: str) -> str:
    """Start a backfill of some datasets; return its identifier."""
    assets = [{"path": dataset.split(".")} for dataset in datasets]
    params = {"assetSelection": assets, "partitionNames": list(partitions)}
    launched = served.ask(_LAUNCH, p=params)["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    return str(launched["backfillId"])


def status(served: Served, backfill: str) -> str:
    """Return the status of a backfill."""
    return str(served.ask(_STATUS, id=backfill)["partitionBackfillOrError"]["status"])


def records(served: Served) -> list[RunRecord]:
    """Return the records of all runs, the oldest first."""
    found: list[dict[str, Any]] = served.ask(_RUNS)["runsOrError"]["results"]
    runs = [
        RunRecord(
            run_id=run["runId"],
            job=run["jobName"],
            status=run["status"],
            created=run["creationTime"],
            started=run["startTime"],
            ended=run["endTime"],
            tags={tag["key"]: tag["value"] for tag in run["tags"]},
        )
        for run in found
    ]
    return sorted(runs, key=lambda run: run.created)


def most_at_once(runs: Iterable[RunRecord]) -> int:
    """Return how many of some finished runs were executed concurrently; a run beginning as another ends does not
    overlap.
    """
    moments = [moment for run in runs for moment in ((run.started, 1), (run.ended, -1))]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most
