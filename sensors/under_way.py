"""The hours that runs are computing, or are about to: whoever plans more leaves them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from orchestration import owners
from orchestration.dataset import key_of
from patterns.core.claims import Claims
from patterns.core.lake import Lake
from patterns.core.partitions import Grain, between
from sensors import jobs

AT_WORK = (dg.DagsterRunStatus.STARTED,)
ASKED_FOR = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    *AT_WORK,
)


def claims(lake: Lake, dataset: str) -> Claims:
    """Give the claims of `blogdata run` on a dataset's hours."""
    return Claims(lake, dataset, alive=owners.alive)


def hours(
    instance: dg.DagsterInstance, dataset: str, statuses: Sequence[dg.DagsterRunStatus] = ASKED_FOR
) -> frozenset[str]:
    """Give the hours of a dataset that Dagster's runs are at.

    Args:
        instance: Dagster's storage.
        dataset: Name as `layer.table`.
        statuses: How far these runs are.
    """
    key = key_of(dataset)
    found = instance.get_runs(dg.RunsFilter(statuses=list(statuses)))
    return frozenset(hour for run in found if _writes(run, key) for hour in _hours(run.tags))


def _writes(run: dg.DagsterRun, dataset: dg.AssetKey) -> bool:
    # A run of a whole job names no assets; a backfill, or a run a person started, does.
    if run.asset_selection is None:
        return dataset in jobs.WRITES.get(run.job_name, ())
    return dataset in run.asset_selection


def _hours(tags: Mapping[str, str]) -> Sequence[str]:
    if PARTITION_NAME_TAG in tags:
        return [tags[PARTITION_NAME_TAG]]
    if ASSET_PARTITION_RANGE_START_TAG in tags:
        return between(tags[ASSET_PARTITION_RANGE_START_TAG], tags[ASSET_PARTITION_RANGE_END_TAG], Grain.HOUR)
    return []
