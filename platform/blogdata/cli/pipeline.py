"""Brings a deployment up to date in one Dagster run, and shows the progress."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from blogdata.cli.output import Outcome, Screen
from blogdata.deliver import serving
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.errors.remedies import ACCEPT
from blogdata.landing.full_loader import ACCEPT_SIZE
from blogdata.landing.log_splitter import unsplit_logs
from blogdata.ledger.events import EventLog
from blogdata.operate import dagster_home
from blogdata.operate.config import Settings
from blogdata.planning import arrivals
from blogdata.planning.plan import Plan, Planner, Selection, Window
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import DEAD_LETTERS
from blogdata.runs.zone import zone_of
from blogdata.table.audit import FROZEN, guard_of
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS, GRAPH, LANDED, SERVED

if TYPE_CHECKING:
    from blogdata.cli.progress import RunProgress

GUARDS = (ACCEPT_SIZE, FROZEN, DEAD_LETTERS)
"""Guards that a person can lift for a run."""


def due_tables(settings: Settings, events: EventLog) -> list[str]:
    if not settings.tables.any:
        return []
    from assets import table_loads

    return table_loads.due(settings, events.publications)


class Pipeline:
    def __init__(
        self,
        settings: Settings,
        *,
        quiet: bool = False,
        accept: str | None = None,
        command: str = "blogdata run",
        lifted: frozenset[str] = frozenset(),
    ) -> None:
        """Prepare runs of a deployment; the command that a person typed is recorded as their trigger."""
        guards = [
            *GUARDS,
            *(guard_of(contract.dataset, audit.name) for contract in CONTRACTS.values() for audit in contract.audits),
        ]
        refuse_unknown([accept] if accept else [], dict.fromkeys(guards), where="--accept", kind="guard")
        self._settings = settings
        self._zone = zone_of(settings)
        self._quiet = quiet
        self._accepted = lifted | ({accept} if accept else set())
        self._command = command
        self._events = EventLog(Lake(root=str(settings.lake)))
        self._served = serving.configured(settings)

    def run(self, *, window: Window | None = None, select: Sequence[str] = (), for_: Sequence[str] = ()) -> Outcome:
        """Run what is stale, `for_` some datasets and their inputs only; or a window or selection again, stale or not.

        A fault of one partition does not block the others.
        """
        refuse_unknown(select, [*CONTRACTS, *self._served], where="--select")
        refuse_unknown(for_, [*CONTRACTS, *self._served], where="--for")
        if for_ and (window is not None or select):
            raise ConfigurationError(
                what="either what is new or changed runs, or a selection runs again",
                where="--for",
                next_step="leave out --for, or leave out --from, --to and --select",
            )
        wanted = self._with_inputs(for_)
        request: dict[str, Any] = {"datasets": list(select or wanted)}
        selection = Selection(window=window, select=select or wanted)
        if window is not None or select:
            span = window or Window(start=None, end=None)
            selected, expired = selection.require_kept(self._planner)
            if not selected and not {*select} & {*self._served}:
                return self._with_held(Outcome(), selection, again=True)
            request.update(span=span.written(), only_again=True)
            outcome = self.run_job(**self._asked(request), label="what was asked for").outcome
            if expired:
                stay = f"{len(expired)} expired partitions stay as they are"
                outcome.warnings.append(f"{stay}, such as {expired[-1].where}: {expired[-1].what}")
        elif self._is_something_to_do(selection):
            label = f"what is stale of {', '.join(for_)}" if for_ else "everything that is stale"
            outcome = self.run_job(**self._asked(request), label=label).outcome
        else:
            outcome = Outcome()
        outcome = self._with_held(outcome, selection, again=bool(select or window))
        if window is None and not select:
            landed = [contract for name, contract in LANDED.items() if not wanted or name in wanted]
            look = Snapshot(self._zone, self._events)
            outcome.warnings += arrivals.warnings(landed, look, datetime.now(timezone.utc))
            outcome.problems += [str(error) for error in arrivals.refusals(landed, look.zone)]
        return outcome

    def run_plan(self, plan: Plan) -> Outcome:
        """Run a plan. Its rest is not stored: after an interruption request the whole plan again."""
        again = {main: keys or [""] for main, keys in plan.wanted().items()}
        return self.run_job(**self._asked({"again": again, "only_again": True}), label="the plan").outcome

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from blogdata.patterns.data_flow.concurrent_runner import AGAIN

        tags = AGAIN if request.get("only_again") else {}
        accepted = {ACCEPT: ",".join(self._accepted)} if self._accepted else {}
        config = {"resources": {"request": {"config": dict(request)}}}
        return {"name": None, "run_config": config, "tags": {**tags, **accepted}}

    @cached_property
    def _planner(self) -> Planner:
        return self._new_planner()

    def _new_planner(self) -> Planner:
        return Planner(graph=GRAPH, look=Snapshot(self._zone, self._events), accepted=self._accepted)

    def _with_inputs(self, datasets: Sequence[str]) -> list[str]:
        read = {read.dataset for name in datasets if name in SERVED for read in SERVED[name].reads}
        return sorted({*datasets, *read, *GRAPH.upstream({*datasets, *read})})

    def _is_something_to_do(self, selection: Selection) -> bool:
        from blogdata.deliver.destinations import is_behind

        served = {*self._served} & {*(selection.select or self._served)}
        return bool(
            unsplit_logs(self._settings.landing)
            or any(self._planner.stale(task) for task in GRAPH.tasks if selection.chosen(task))
            or due_tables(self._settings, self._events)
            or (served and is_behind(self._settings, self._events))
        )

    def _with_held(self, outcome: Outcome, selection: Selection, *, again: bool) -> Outcome:
        """Add to the problems the hours that wait for a person, once per reason; everything else has run."""
        # A run has changed what the first look saw.
        planner = self._new_planner() if outcome.runs else self._planner
        chosen = {name for task in GRAPH.tasks if selection.chosen(task) for name in task.datasets}
        refused = [] if again else [error for error in planner.refused() if error.where in chosen]
        waiting = dict(selection.waiting(planner))
        # The failed step reports the same reason: do not list it twice.
        outcome.problems = [problem for problem in outcome.problems if problem not in waiting.values()]
        outcome.problems += map(str, [*refused, *waiting])
        return outcome

    def run_job(
        self,
        name: str | None,
        run_config: Mapping[str, Any],
        tags: Mapping[str, str] = MappingProxyType({}),
        *,
        label: str = "",
    ) -> RunProgress:
        """Run a job in this process, to its end; its failure is a problem of the outcome."""
        outcome = Outcome()
        with Screen(shown=not self._quiet).opened() as screen:
            if label:
                screen.print(label)
            screen.status("loading Dagster")
            # Dagster takes seconds to import: a command with nothing to do answers at once without it.
            from blogdata.cli.progress import RunProgress
            from blogdata.operate.dagster_internals import InMemoryJob, execute_run_iterator
            from blogdata.runs import killed_runs, storage_faults
            from blogdata.runs.refresh_request import JOB
            from definitions import build

            progress = RunProgress(screen, outcome)
            started = time.monotonic()
            with storage_faults.translated(self._settings), dagster_home.open_instance(self._settings) as instance:
                killed_runs.settle(instance, launched=False)
                job = build(self._settings).get_repository_def().get_job(name or JOB)
                run = instance.create_run_for_job(
                    job_def=job,
                    tags={
                        "blogdata/trigger": self._command,
                        **tags,
                        # The daemon would start a killed run again; a person repeats a command.
                        "dagster/max_retries": "0",
                        **killed_runs.own(),
                    },
                    run_config={
                        **run_config,
                        # The run's log is in Dagster's storage; on the terminal it would drown the progress.
                        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                    },
                )
                outcome.runs += 1
                for event in execute_run_iterator(InMemoryJob(job), run, instance):
                    progress.see(event)
                if progress.interrupted:
                    # Dagster turns the interrupt into a failure: raise it again, so that nothing after the run goes on.
                    raise KeyboardInterrupt
        outcome.seconds = time.monotonic() - started
        return progress
