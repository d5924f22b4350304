"""The driver: what is stale or asked for of a task becomes publications, checks and events, whoever asks.

A materialization or a backfill in the UI, a command, a schedule and a sensor all make a request; each step of their
runs is one call of :meth:`Driver.run`. It claims partitions, computes them in one commit per dataset, and logs checks
and events. Failed partitions are left out: the others are published, then the step fails.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.errors.remedies import ACCEPT, Remedy, ShowLedger
from blogdata.landing.full_loader import ACCEPT_SIZE
from blogdata.ledger import faults as recorded_faults
from blogdata.patterns.data_flow import single_runner
from blogdata.patterns.error_management import static_late_data_integrator
from blogdata.planning.graph import Task
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot, awaited
from blogdata.planning.staleness import Lane, Scope
from blogdata.runs import lost_tables, turns
from blogdata.runs.checks import LEDGER, waiting_result
from blogdata.runs.computation import (
    Done,
    LineageCode,
    Publication,
    access_of,
    log_event,
    report_refused,
    run_context,
)
from blogdata.runs.refresh_request import Request
from blogdata.runs.retries import MAX_RETRIES, failed, failure, joined
from blogdata.runs.step import Step
from blogdata.table.faults import typed_errors

MOST_ROWS = 20_000_000
"""Most input rows of one commit; larger work is split into several commits by rows, not at gaps."""
MOST_AGAIN = 96
"""Most partitions that a run for what is asked for again claims and commits at a time."""
_ASKED = ""
"""State of a partition that a person requested: it runs whether or not it lacks any."""


class Driver:
    """One step of a run."""

    def __init__(
        self, context: dg.OpExecutionContext, code: LineageCode, request: Request, *, is_launched: bool
    ) -> None:
        self._context = context
        self._code = code
        self._request = request
        self._is_launched = is_launched
        self._access = access_of(context)
        self._accepted = frozenset(filter(None, context.run.tags.get(ACCEPT, "").split(",")))
        self._planner = self._newest()
        self._asked: set[str] = set()
        self._failed_checks: list[str] = []

    @classmethod
    def run(
        cls, code: LineageCode, task: Task, context: dg.OpExecutionContext, launched: Request | None = None
    ) -> Sequence[str]:
        """Compute the stale and the requested partitions of a task; fail if some failed, or are newly held.

        An asset is `launched` for its own request, not for that of the run. Return the failed checks of published rows,
        as `dataset:check`: nothing should be computed from these rows.
        """
        request = launched or context.resources.request
        if not request.is_for(task.datasets):
            return ()
        step = cls(context, code, request, is_launched=launched is not None)
        step._require_unblocked(task)
        held_before = request.held_before(step._planner.held)
        faults: dict[str, PlatformError] = {}
        ran: dict[str, str] = {}
        step._asked = step._again(task)
        # Of what was published before only a part is claimed at a time, so that it blocks nobody for long.
        is_again = request.only_again or request.lane == Lane.AGAIN.value
        most, passes = MOST_AGAIN if is_again and not task.in_order else None, 0
        # An automatic run does not wait: a backfill may hold the table or its partitions for hours.
        waits = request.scope == Scope.ALL.value
        # Partitions may make others of their own dataset stale: repeat until none is left.
        while todo := step._left(task, ran, passes):
            with turns.claimed(step._access.lake, task, sorted(todo)[:most], context.log, waits=waits) as mine:
                if not mine:
                    context.log.warning(f"{task.main} is left to the run that executes it; what it leaves is stale")
                    break
                # Another run may have computed some of these before its claim ended.
                if step._is_changed(task):
                    step._planner = step._newest()
                step._asked = step._again(task)
                left = {key: state for key, state in step._left(task, ran, passes).items() if key in mine}
                for batch in step._batches(task, sorted(left)):
                    done = step._computed(task, batch)
                    faults = {key: fault for key, fault in faults.items() if key not in batch} | done.faults
                    try:
                        step._report(task, done)
                    except PlatformError as error:
                        # Published, and not judged: another try would find nothing to do, and pass.
                        raise failed(error) from error
            ran |= {**dict.fromkeys(mine, _ASKED), **left}
            passes += 1
            if task.continues or faults or step._planner.waiting(task):
                step._planner = step._newest()
        held = {
            key: error
            for dataset, errors in step._planner.held(task).items()
            for key, error in errors.items()
            if key not in held_before.get(dataset, {})
        }
        if ran or held:
            step._judge_waiting(task, faults, published=ran.keys() - faults.keys())
        # Only the run that first finds a held partition fails; the check `waiting` stays red.
        faults.update(held)
        if faults:
            raise failed(joined(faults, where=task.main, outcome="were not published"))
        return step._failed_checks

    def _newest(self) -> Planner:
        """Return a plan of what is there now: a step has one, unless its own tables change while it is at work."""
        return Planner(
            graph=self._code.graph,
            look=Snapshot(self._access.landing_zone, self._access.events),
            accepted=self._accepted,
            scope=Scope(self._request.scope),
        )

    def _is_changed(self, task: Task) -> bool:
        events, look = self._access.events, self._planner.look
        return any(events.publications(name) != look.published(name) for name in task.datasets)

    def _require_unblocked(self, task: Task) -> None:
        blocked = self._request.blocked
        if set(task.datasets) & self._code.graph.downstream(blocked):
            what = f"the ledger of {', '.join(sorted(blocked))} does not add up, and nothing is made of it in this run"
            remedy = Remedy("see what is missing, and how to compute it again: ", ShowLedger())
            raise failed(PlatformError(what=what, where=task.main, next_step=remedy))

    def _again(self, task: Task) -> set[str]:
        """Return the requested partitions that this run has not published."""
        keys = self._requested(task)
        if not keys:
            return set()
        # It would be an empty table, or an odd error. An input that is only not computed yet is named partition-wise.
        if not self._planner.has_input(task) and (error := awaited(self._code.graph, self._planner.look, task.main)):
            raise error
        published = self._planner.look.published(task.main)
        own = {key for key, entry in published.items() if entry.run_id == self._context.run_id}
        # A resumed run continues: partitions it has already published itself are done. A step that was launched begins
        # anew, for its events and checks: what it has published it recognises by the commit, and does not write again.
        return keys if self._is_launched else keys - own

    def _requested(self, task: Task) -> set[str]:
        keys = {key for dataset in task.datasets for key in self._request.again.get(dataset, ())}
        if window := self._request.window:
            keys |= {key for key in self._planner.computable(task) if window.holds(key, task.grain)}
        return keys

    def _left(self, task: Task, ran: Mapping[str, str], passes: int) -> dict[str, str]:
        """Return the partitions to compute, each with the input state that it lacks.

        Each partition runs once, since one whose inputs change all the time would run for ever. Only one that continues
        from an earlier partition runs again, if that has changed meanwhile: this ends with the newest partition. Each
        pass runs four times as many: a batch costs about the same whatever its size. A replay computes nothing ahead.
        """
        todo = {**dict.fromkeys(self._asked - ran.keys(), _ASKED), **self._stale(task, first=not ran)}
        again = self._planner.continuing(task, after=ran)
        left = {key: state for key, state in todo.items() if key not in ran or (key in again and ran[key] != state)}
        count = 0 if self._request.only_again else 4 ** max(passes - 1, 0) - 1
        return {**dict.fromkeys(self._planner.ahead(task, left.keys() & again, count), _ASKED), **left}

    def _stale(self, task: Task, *, first: bool) -> dict[str, str]:
        if self._request.only_again:
            return {}
        most = self._request.max_republished if first else 0
        stale = self._planner.in_lane(task, self._planner.stale(task), Lane(self._request.lane), max_republished=most)
        waiting = {} if self._request.retry_waiting else self._planner.waiting(task)
        return {key: state for key, state in stale.items() if key not in waiting}

    def _batches(self, task: Task, keys: Sequence[str]) -> list[list[str]]:
        if not keys or task.grain is None or task.in_order:
            return [list(keys)] if keys else []
        published = self._planner.look.published(task.main)
        batches, rows = [list[str]()], 0
        for key in static_late_data_integrator.run_order(keys, stateful=task.continues):
            count = published[key].rows_in if key in published else MOST_ROWS // 1000
            if batches[-1] and rows + count > MOST_ROWS:
                batches, rows = [*batches, []], 0
            batches[-1].append(key)
            rows += count
        return [sorted(batch) for batch in batches]

    def _computed(self, task: Task, keys: Sequence[str]) -> Done:
        """Compute partitions in one commit per dataset; failed ones are left out, the others published."""
        done, access = Done(), self._access
        # Of what was found stale, the inputs are there.
        asked = [key for key in keys if key in self._asked]
        if asked and task.grain is not None:
            done.faults = {**self._planner.unpublished(task, asked), **self._planner.expired(task, asked)}
        left = [key for key in keys if key not in done.faults]
        while left:
            began = time.monotonic()
            try:
                with self._context.resources.spark.guard() as spark, typed_errors(task.main):
                    step = Step(
                        contract=task.contracts[0],
                        partitions=() if task.grain is None else left,
                        spark=spark,
                        access=access,
                        deployment=self._context.resources.deployment,
                        run=run_context(self._context, self._code.version),
                        accepted=self._accepted,
                        stale=set(left) - self._asked,
                        companions=task.contracts[1:],
                    )
                    if ACCEPT_SIZE not in step.accepted:
                        lost_tables.require_inputs(step.events, task, self._planner)
                    lost_tables.begin_anew(spark, step.events, task.contracts)
                    commits = self._code.computations[task.main].compute(step)
                    for commit in commits.values():
                        step.events.record(commit)
            except PlatformError as error:
                if error.transient and self._context.retry_number < MAX_RETRIES:
                    raise failure(self._context, error) from error
                at_fault = set() if error.transient else error.partitions & set(left)
                faults = {key: error.by_partition.get(key, error) for key in sorted(at_fault) or left}
                done.faults.update(faults)
                if not at_fault:
                    break
                left = single_runner.before(left, at_fault) if task.in_order else sorted(set(left) - at_fault)
                for fault in dict.fromkeys(faults.values()) if left else ():
                    named = ", ".join(key for key, of in faults.items() if of is fault)
                    self._context.log.error(f"left out: {named}: {fault}")
            else:
                seconds = time.monotonic() - began
                done.publications = [
                    Publication(contract=contract, step=step, commit=commits[contract.dataset], seconds=seconds)
                    for contract in task.contracts
                ]
                break
        return done

    def _report(self, task: Task, done: Done) -> None:
        """Log checks and events of a batch, the checks first (:mod:`blogdata.runs.checks`)."""
        for publication in done.publications:
            blocking = publication.report(self._context)
            self._failed_checks += blocking
            if f"{publication.contract.dataset}:{LEDGER}" in blocking:
                self._request.blocked.add(publication.contract.dataset)
        for error in dict.fromkeys(done.faults.values()):
            report_refused(self._context, error, task.contracts)

    def _judge_waiting(self, task: Task, faults: Mapping[str, PlatformError], *, published: Collection[str]) -> None:
        """Record the permanently failed partitions, which wait until their inputs change, and show all that wait."""
        lasting = {key: error for key, error in faults.items() if not error.transient}
        if lasting:
            recorded_faults.record(self._access.events, task.main, lasting, self._planner.stale(task))
            self._planner = self._newest()
        waiting = self._planner.waiting(task)
        for contract in task.contracts if waiting or published else ():
            log_event(self._context, waiting_result(contract, waiting))
