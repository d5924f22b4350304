"""A run in the background, and Dagster's records of runs.

Dagster configures logging with every run, and two runs in threads of one process can deadlock; each process may execute
only one run, as the platform does.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType

import dagster as dg

from blogdata.cli.outcome import Outcome
from blogdata.orchestration import dead_runs
from blogdata.orchestration.names import asset_key, step_of
from blogdata.services import dagster_home
from lineage.deployment import Deployment


class Background:
    """A run in its own thread; its exception is raised again when its outcome is requested."""

    def __init__(self, deployment: Deployment, select: tuple[str, ...] = (), day: str | None = None) -> None:
        self._deployment = deployment
        self._select = select
        self._day = day
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"run of {select or 'all'}")

    def __enter__(self) -> Background:
        """Start the run."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the end of the run."""
        self._thread.join()

    @property
    def working(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def outcome(self) -> Outcome:
        """Wait for the end of the run; return its outcome."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._outcome is not None
        return self._outcome

    def _run(self) -> None:
        try:
            hours = None if self._day is None else (self._day, self._day)
            self._outcome = self._deployment.run(select=self._select, hours=hours)
        except BaseException as error:  # noqa: BLE001 - raised again by outcome()
            self._error = error


def retries(deployment: Deployment, dataset: str) -> list[str]:
    """List the types of errors that made steps of a dataset retry in any run so far, oldest first."""
    found = []
    with dagster_home.open_instance(deployment.settings) as instance:
        for record in reversed(instance.get_run_records()):
            for entry in instance.all_logs(record.dagster_run.run_id, of_type=dg.DagsterEventType.STEP_UP_FOR_RETRY):
                event = entry.get_dagster_event()
                if event.step_key == step_of(dataset):
                    error = event.step_retry_data.error
                    found.append(str(error.cause.cls_name) if error.cause else "untyped")
    return found


def under_way(deployment: Deployment) -> list[str]:
    """List the runs that are in progress for Dagster."""
    with dagster_home.open_instance(deployment.settings) as instance:
        return [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=list(dead_runs.UNDER_WAY)))]


def newest_tags(deployment: Deployment) -> Mapping[str, str]:
    """Return the tags of the newest run."""
    with dagster_home.open_instance(deployment.settings) as instance:
        (run,) = instance.get_runs(limit=1)
    return run.tags


def evaluations(deployment: Deployment, dataset: str, check: str) -> list[dg.AssetCheckEvaluation]:
    """List the results of a check, the newest first."""
    key = dg.AssetCheckKey(asset_key(dataset), check)
    with dagster_home.open_instance(deployment.settings) as instance:
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    events = [record.event.dagster_event for record in records if record.event is not None]
    # A run plans its checks before it evaluates them.
    made = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return [event.asset_check_evaluation_data for event in events if event is not None and event.event_type == made]


def last_run(deployment: Deployment) -> dg.DagsterRunStatus:
    """Return the final status of the newest run."""
    with dagster_home.open_instance(deployment.settings) as instance:
        return instance.get_run_records(limit=1)[0].dagster_run.status
