"""Keeps the checks of a dataset evaluated while a run publishes it.

Dagster shows no evaluation that is older than the newest rows, unless it is of their run. So a run logs all checks
before the rows; those that only the sensor `detectors` evaluates are carried over until its next tick.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.orchestration.checks import newest_evaluation
from blogdata.orchestration.computation import Context, evaluation, log_event
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.waiting import waiting_check
from blogdata.patterns.observability.reading import FLOW, LAG, SLA
from blogdata.planning.graph import Task
from blogdata.publish.contract import Contract

CARRIED = "as_before_the_publication"
"""Metadata of an evaluation that was carried over: the sensor makes another one."""


def carried(instance: dg.DagsterInstance, contract: Contract) -> list[dg.AssetCheckEvaluation]:
    """Return the newest evaluations of a dataset's timed checks, to be logged by the run that publishes."""
    key, watch = asset_key(contract.dataset), contract.watch
    names = [name for name in (FLOW, LAG, SLA) if getattr(watch, name) is not None]
    shown = [newest_evaluation(instance, dg.AssetCheckKey(key, name)) for name in names]
    return [
        dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=newest.check_name,
            passed=newest.passed,
            severity=newest.severity,
            description=newest.description,
            metadata={**newest.metadata, CARRIED: True},
        )
        for newest, _ in filter(None, shown)
    ]


class ShownChecks:
    """The checks that a step of the job `refresh` logs besides those of its publications."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._carried: set[str] = set()
        self._waiting: Mapping[str, PlatformError] | None = None

    def carry(self, contract: Contract) -> None:
        """Carry the timed checks over the first publication of a dataset; those after it are of the same run."""
        if contract.dataset not in self._carried:
            self._carried.add(contract.dataset)
            for one in carried(self._context.instance, contract):
                log_event(self._context, one)

    def show_waiting(self, task: Task, waiting: Mapping[str, PlatformError], *, at_end: bool = False) -> None:
        if at_end and self._waiting == {} and not waiting:
            return
        self._waiting = waiting
        for contract in task.contracts:
            log_event(self._context, evaluation(waiting_check(contract, waiting)))
