"""Runs the stages of the plan, one Dagster run per gapless range, and shows how far they are."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator

from assets import plan
from assets.held import HELD, held_hours
from assets.plan import STAGES
from assets.serving.daily_stats import DATASET as SERVING
from assets.serving.daily_stats import SCHEMA, SERVED
from assets.serving.daily_stats import STAGE as SERVING_STAGE
from blogdata.output import console
from blogdata.progress import Outcome, RunProgress
from orchestration import dead_runs, owners, replay_planner, sinks, storage_faults
from orchestration.dataset import ACCEPT, key_of, range_tags
from orchestration.replay_planner import ASKED, PlannedRun, Stage, Wanted
from orchestration.shares import DEAD_LETTERS
from orchestration.step import FOLLOWED
from patterns.core import names
from patterns.core.errors import ConfigurationError, PlatformError
from patterns.core.events import EventLog
from patterns.core.lake import Lake
from patterns.core.partitions import Grain, contiguous, start_of
from patterns.idempotency import transactional_sink
from patterns.idempotency.fast_metadata_cleaner import FROZEN
from patterns.idempotency.stateful_merger import ReplayTooLong
from patterns.ingestion.full_loader import SIZE
from patterns.ingestion.log_splitter import pending
from quality.contracts import CONTRACTS
from sensors import under_way
from services import dagster_home, postgres
from services.config import Settings

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""The run's log is in Dagster's storage; on the terminal it would drown the progress."""
_LOOK_AGAIN_SECONDS = 1.0
GUARDS = (SIZE, FROZEN, DEAD_LETTERS)
"""What a person can lift for a run."""
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

    def __init__(
        self, settings: Settings, *, quiet: bool = False, accept: str | None = None, command: str = "blogdata run"
    ) -> None:
        """Prepare runs of a deployment.

        Args:
            settings: Of the deployment.
            quiet: Shows no progress.
            accept: Name of a guard that is lifted for these runs.
            command: What a person typed; the runs and their commits bear it as their trigger.

        Raises:
            ConfigurationError: No guard has that name.
        """
        self._settings = settings
        self._quiet = quiet
        self._accepted = frozenset([accept] if accept else [])
        self._tags = {**_accepted(accept), "blogdata/trigger": command}
        self._lake = Lake(root=str(settings.lake))
        self._events = EventLog(self._lake)
        self._repository = _definitions(settings).get_repository_def()
        self._serving = SERVING_STAGE.datasets if postgres.configured(settings) else ()

    def run(self, *, window: Window | None = None, select: Sequence[str] = ()) -> Outcome:
        """Run all stages; the first that fails ends the command, because the later ones would read its output.

        Nothing reads what is served: whatever becomes of it, the last stage runs.

        Args:
            window: Run this span again, changed or not; None runs what is new or changed.
            select: Names of the datasets to run; empty runs all.

        Returns:
            What ran, and what failed.

        Raises:
            ConfigurationError: A selected dataset does not exist.
            StorageFailed: Dagster's storage failed.
        """
        names.known(select, [*CONTRACTS, *self._serving], where="--select")
        with self._running() as (instance, outcome):
            if not select and pending(self._settings.landing):
                self._materialize(instance, [HOURLY_LOGS], {}, "access logs", outcome)
            *needed, today = STAGES
            for stage in needed:
                if outcome.ok:
                    self._stage(instance, stage, window, select, outcome)
            unserved: list[str] = []
            if outcome.ok and self._serving:
                self._serve(instance, window, select, outcome)
                unserved, outcome.problems = outcome.problems, []
            # Nothing reads it, and its replays may be refused: it keeps nobody waiting.
            if outcome.ok:
                waiting = self._waiting(window, select)
                try:
                    self._stage(instance, today, window, select, outcome)
                except ReplayTooLong as error:
                    outcome.problems.append(str(error))
                outcome.problems += waiting
            outcome.problems = unserved + outcome.problems
        return outcome

    def replay(self, runs: Sequence[PlannedRun]) -> Outcome:
        """Run what was planned; the first run that fails ends it, because the later ones would read its output.

        Nothing keeps what is left then, and staleness may not find it: whoever wants it asks for all of it again.

        Args:
            runs: In their order.

        Returns:
            What ran, and what failed.

        Raises:
            StorageFailed: Dagster's storage failed.
        """
        with self._running() as (instance, outcome):
            for number, run in enumerate(runs, start=1):
                if outcome.ok:
                    label = f"[{number}/{len(runs)}] {run.stage.name}"
                    self._execute(instance, run, label, outcome, {ACCEPT: FOLLOWED})
        return outcome

    @contextmanager
    def _running(self) -> Iterator[tuple[dg.DagsterInstance, Outcome]]:
        started = time.monotonic()
        outcome = Outcome()
        with (
            storage_faults.named(self._settings.home / "dagster"),
            dagster_home.opened(self._settings) as instance,
        ):
            dead_runs.settle(instance)
            yield instance, outcome
        outcome.seconds = time.monotonic() - started

    def _stage(
        self,
        instance: dg.DagsterInstance,
        stage: Stage,
        window: Window | None,
        select: Sequence[str],
        outcome: Outcome,
    ) -> None:
        chosen = plan.chosen(stage, select)
        if plan.is_first(stage) and (window is not None or select):
            there = plan.known(stage, self._settings.landing, self._events, accepted=self._accepted)
            keys = [key for key in there if window is None or stage.grain is None or window.holds(key, stage.grain)]
            self._all(instance, stage, {dataset: dict.fromkeys(keys, ASKED) for dataset in chosen}, outcome)
        elif stage.grain is None:
            self._all(instance, stage, self._stale(stage, chosen), outcome)
        else:
            self._each_once(instance, stage, chosen, outcome)

    def _serve(
        self, instance: dg.DagsterInstance, window: Window | None, select: Sequence[str], outcome: Outcome
    ) -> None:
        if select and SERVING not in select:
            return
        try:
            if window is None and not select:
                with postgres.connected(postgres.ensure(self._settings)) as connection:
                    served = transactional_sink.served(connection, SCHEMA)
                    days = sinks.stale(self._lake, self._events, SERVED, served)
            else:
                there = sinks.complete(self._events, SERVED)
                days = [day for day in there if window is None or window.holds(day, Grain.DAY)]
            for run in replay_planner.cut(SERVING_STAGE, {SERVING: dict.fromkeys(days, ASKED)}):
                if not outcome.ok:
                    # A day that is refused keeps no other one waiting; a server that is lost ends it.
                    postgres.ensure(self._settings)
                self._execute(instance, run, SERVING_STAGE.name, outcome)
        except PlatformError as error:
            outcome.problems.append(str(error))

    def _each_once(self, instance: dg.DagsterInstance, stage: Stage, chosen: Sequence[str], outcome: Outcome) -> None:
        """Run what is stale, and wait for what others are computing: of several runs, one computes each partition."""
        claims = under_way.claims(self._lake, stage.datasets[0])
        owner = owners.this_run()
        done: set[str] = set()
        waiting = False
        while outcome.ok:
            stale = self._stale(stage, chosen)
            left = {key for keys in stale.values() for key in keys} - done
            if not left:
                return
            mine = claims.take(left - self._busy(instance, stage), owner)
            try:
                if mine:
                    # Whoever held one of these a moment ago may have done it.
                    self._all(instance, stage, self._stale(stage, chosen, within=mine), outcome)
                    done.update(mine)
            finally:
                claims.release(mine, owner)
            if not mine:
                if not (self._quiet or waiting):
                    console.print(f"waiting for another run, which computes {len(left)} partitions of {stage.name}")
                waiting = True
                time.sleep(_LOOK_AGAIN_SECONDS)
                dead_runs.settle(instance)

    def _stale(self, stage: Stage, chosen: Sequence[str], within: Collection[str] | None = None) -> Wanted:
        found = plan.stale(stage, self._settings.landing, self._events, accepted=self._accepted)
        return {
            dataset: {key: why for key, why in keys.items() if within is None or key in within}
            for dataset, keys in found.items()
            if dataset in chosen
        }

    def _waiting(self, window: Window | None, select: Sequence[str]) -> list[str]:
        """Say which hours wait for a person, once for each reason: everything else has been done."""
        if not plan.chosen(plan.stage_of(HELD), select):
            return []
        waiting: dict[str, list[str]] = {}
        for hour, fault in sorted(held_hours(self._events).items()):
            if window is None or window.holds(hour, Grain.HOUR):
                waiting.setdefault(str(fault), []).append(hour)
        return [f"{HELD} {_ranges(hours)} waits for a person: {fault}" for fault, hours in waiting.items()]

    def _busy(self, instance: dg.DagsterInstance, stage: Stage) -> frozenset[str]:
        if stage.grain is not Grain.HOUR:
            return frozenset()
        return under_way.hours(instance, stage.datasets[0], under_way.AT_WORK)

    def _all(self, instance: dg.DagsterInstance, stage: Stage, wanted: Wanted, outcome: Outcome) -> None:
        for run in replay_planner.cut(stage, wanted):
            if not outcome.ok:
                return
            self._execute(instance, run, f"[{STAGES.index(stage) + 1}/{len(STAGES)}] {stage.name}", outcome)

    def _execute(
        self,
        instance: dg.DagsterInstance,
        run: PlannedRun,
        label: str,
        outcome: Outcome,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        label = f"{label} {run.span}" if run.keys else label
        keys = [key_of(dataset) for dataset in run.datasets]
        self._materialize(instance, keys, {**range_tags(run.keys), **(tags or {})}, label, outcome)

    def _materialize(
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
            tags={**tags, **self._tags, **dead_runs.own()},
            asset_selection=selection,
            run_config=QUIET,
        )
        outcome.runs += 1
        progress = RunProgress(label, outcome, shown=not self._quiet)
        with progress:
            for event in execute_run_iterator(InMemoryJob(subset), run, instance):
                progress.see(event)
        if progress.interrupted:
            # Dagster makes a failure of it, which is no reason to go on with whatever comes after the run.
            raise KeyboardInterrupt


def _ranges(hours: Sequence[str]) -> str:
    spans = [span.keys for span in contiguous(hours, Grain.HOUR)]
    return ", ".join(keys[0] if len(keys) == 1 else f"{keys[0]}..{keys[-1]}" for keys in spans)


def _accepted(guard: str | None) -> dict[str, str]:
    if guard is None:
        return {}
    if guard not in GUARDS:
        raise ConfigurationError(
            what=f"no guard is called {guard}", where="--accept", next_step=f"choose: {', '.join(GUARDS)}"
        )
    return {ACCEPT: guard}


def _definitions(settings: Settings) -> dg.Definitions:
    from definitions import build

    return build(settings)
