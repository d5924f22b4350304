"""A run in the background, and Dagster's records of runs.

Dagster configures logging with every run, and two runs in threads of one process can deadlock; each process may execute
only one run, as the platform does.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from blogdata.operate import dagster_home
from blogdata.runs import killed_runs
from blogdata.runs.names import step_of
from lineage.deployment import Deployment


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
    with dagster_home.open_instance(deployment.settings) as instance:
        return [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=list(killed_runs.UNDER_WAY)))]


def newest_tags(deployment: Deployment) -> Mapping[str, str]:
    with dagster_home.open_instance(deployment.settings) as instance:
        (run,) = instance.get_runs(limit=1)
    return run.tags
