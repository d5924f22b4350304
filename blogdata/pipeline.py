"""Runs the phases of the plan, one Dagster run per gapless range, and shows how far they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from assets.plan import PHASES, Phase
from blogdata import names
from blogdata.progress import Outcome, RunProgress
from orchestration import dead_runs, storage_faults
from orchestration.dataset import ACCEPT, key_of
from patterns.core.errors import ConfigurationError
from patterns.core.events import EventLog
from patterns.core.lake import Lake
from patterns.core.partitions import Grain, contiguous, start_of
from patterns.ingestion.full_loader import SIZE
from patterns.ingestion.log_splitter import pending
from quality.contracts import CONTRACTS
from services import dagster_home
from services.config import Settings

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""The run's log is in Dagster's storage; on the terminal it would drown the progress."""
HOURLY_LOGS = dg.AssetKey(["landing", "hourly_access_logs"])


@dataclass(frozen=True, kw_only=True)
class Window:
    """A span of time, the end not included."""

    start: datetime | None
    end: datetime | None

    def holds(self, key: str, grain: Grain) -> bool:
        """Tell whether a partition overlaps the span."""
        start = start_of(key, grain)
        return (self.end is None or start < self.end) and (self.start is None or start + grain.length > self.start)


class Pipeline:
    """Everything from the landing zone to gold, for one deployment."""

    def __init__(self, settings: Settings, *, quiet: bool = False, accept: str | None = None) -> None:
        """Prepare runs of a deployment.

        Args:
            settings: Of the deployment.
            quiet: Shows no progress.
            accept: Name of a guard that is lifted for these runs.

        Raises:
            ConfigurationError: No guard has that name.
        """
        self._settings = settings
        self._quiet = quiet
        self._accepted = _accepted(accept)
        self._events = EventLog(Lake(root=str(settings.lake)))
        self._repository = _definitions(settings).get_repository_def()

    def run(self, *, window: Window | None = None, select: Sequence[str] = ()) -> Outcome:
        """Run all phases; the first that fails ends the command, because the later ones would read its output.

        Args:
            window: Run this span again, changed or not; None runs what is new or changed.
            select: Names of the datasets to run; empty runs all.

        Returns:
            What ran, and what failed.

        Raises:
            ConfigurationError: A selected dataset does not exist.
            StorageFailed: Dagster's storage failed.
        """
        names.known(select, CONTRACTS, where="--select")
        started = time.monotonic()
        outcome = Outcome()
        with storage_faults.named(self._settings.home / "dagster"), dagster_home.opened(self._settings) as instance:
            dead_runs.settle(instance)
            if not select and pending(self._settings.landing):
                self._execute(instance, [HOURLY_LOGS], {}, "access logs", outcome)
            for number, phase in enumerate(PHASES, start=1):
                if not outcome.ok:
                    break
                self._phase(instance, phase, number, window, select, outcome)
        outcome.seconds = time.monotonic() - started
        return outcome

    def _phase(
        self,
        instance: dg.DagsterInstance,
        phase: Phase,
        number: int,
        window: Window | None,
        select: Sequence[str],
        outcome: Outcome,
    ) -> None:
        datasets = [dataset for dataset in phase.datasets if not select or dataset in select]
        if not datasets:
            return
        label = f"[{number}/{len(PHASES)}] {phase.name}"
        keys = [key_of(dataset) for dataset in datasets]
        grain = phase.grain
        if grain is None:
            again = window is not None and phase.known(self._settings.landing, self._events)
            if select or again or phase.partitions(self._settings.landing, self._events):
                self._execute(instance, keys, {}, label, outcome)
            return
        for span in contiguous(self._partitions(phase, grain, window, forced=bool(select)), grain):
            tags = {ASSET_PARTITION_RANGE_START_TAG: span.first, ASSET_PARTITION_RANGE_END_TAG: span.last}
            self._execute(instance, keys, tags, f"{label} {span.first} … {span.last} ({len(span.keys)})", outcome)
            if not outcome.ok:
                return

    def _partitions(self, phase: Phase, grain: Grain, window: Window | None, *, forced: bool) -> list[str]:
        stale = set(phase.partitions(self._settings.landing, self._events))
        if window is None and not forced:
            return sorted(stale)
        there = stale | set(phase.known(self._settings.landing, self._events))
        return sorted(key for key in there if window is None or window.holds(key, grain))

    def _execute(
        self,
        instance: dg.DagsterInstance,
        keys: Sequence[dg.AssetKey],
        tags: dict[str, str],
        label: str,
        outcome: Outcome,
    ) -> None:
        selection = frozenset(keys)
        job = self._repository.get_implicit_job_def_for_assets(list(keys))
        assert job is not None
        subset = job.get_subset(asset_selection=selection)
        run = instance.create_run_for_job(
            job_def=subset,
            tags={**tags, **self._accepted, "blogdata/trigger": "blogdata run"},
            asset_selection=selection,
            run_config=QUIET,
        )
        outcome.runs += 1
        progress = RunProgress(label, outcome, shown=not self._quiet)
        with progress:
            for event in execute_run_iterator(InMemoryJob(subset), run, instance):
                progress.see(event)


def _accepted(guard: str | None) -> dict[str, str]:
    if guard is None:
        return {}
    if guard != SIZE:
        raise ConfigurationError(what=f"no guard is called {guard}", where="--accept", next_step=f"choose: {SIZE}")
    return {ACCEPT: guard}


def _definitions(settings: Settings) -> dg.Definitions:
    from definitions import build

    return build(settings)
