"""The job `refresh`: one run brings the whole lineage up to date, scattered partitions of all datasets included.

Each task is one step, in the order of the lineage. A step determines what is stale when it starts, after its upstream
steps have published, and computes all of it in one commit per dataset. A step with failed partitions yields its output
first and fails then: downstream steps run on the good partitions, and failed ones were not published.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.orchestration import turns
from blogdata.orchestration.carried_checks import ShownChecks
from blogdata.orchestration.checks import LEDGER
from blogdata.orchestration.computation import (
    RESOURCES,
    Done,
    LineageCode,
    accepted,
    access_of,
    compute,
    evaluation,
    log_event,
    refused_checks,
)
from blogdata.orchestration.names import op_of, step_of
from blogdata.orchestration.partition_faults import joined
from blogdata.orchestration.refresh_request import JOB, Request
from blogdata.orchestration.replays import Since
from blogdata.orchestration.retries import MAX_RETRIES, failed, failure
from blogdata.orchestration.waiting import note_faults, show_failed
from blogdata.patterns.data_flow.concurrent_runner import ARRIVING
from blogdata.patterns.error_management import static_late_data_integrator
from blogdata.planning.graph import Task
from blogdata.planning.plan import Planner
from blogdata.planning.selection import Window
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Lane, Scope
from blogdata.publish.contract import Contract
from blogdata.publish.writes import InOrder

MOST_ROWS = 20_000_000
"""Most input rows of one commit; larger work is split into several commits by rows, not at gaps."""
MOST_AGAIN = 96
"""Most partitions that a run for what is asked for again claims and commits at a time."""
_ASKED = ""
"""State of a partition that a person requested: it runs whether or not it lacks any."""
Served = tuple[Contract, dg.OpDefinition]
CONTINUE_PAST_FAILURES = dg.in_process_executor.configured(
    {"retries": {"enabled": {}}, "step_dependency_config": {"require_upstream_step_success": False}},
    name="continue_past_failures",
)
"""A step runs even if an upstream step failed after yielding its output."""


def refresh_job(code: LineageCode, *, first: dg.OpDefinition, served: Sequence[Served] = ()) -> dg.JobDefinition:
    @dg.graph(name=JOB)
    def refresh() -> None:
        landing = first()
        done: dict[str, Any] = {}
        for task in code.graph.tasks:
            names = sorted({edge.above for edge, _ in code.graph.edges(task)} & done.keys())
            above = [done[name] for name in names] or [landing]
            # Of the steps that may run, the executor takes the one of highest priority; this keeps the lineage order.
            priority = {"dagster/priority": str(-len(done))}
            step = _step(code, task).alias(step_of(task.main)).tag(priority)
            done.update(dict.fromkeys(task.datasets, step(above)))
        for contract, serve in served:
            serve.alias(step_of(contract.dataset))([done[read.dataset] for read in contract.reads])

    return refresh.to_job(
        name=JOB,
        description="Compute whatever is stale, from the landing zone to what is served: every dataset, any partitions",
        executor_def=CONTINUE_PAST_FAILURES,
        tags=ARRIVING,
    )


def op_failing_after_output(
    name: str, description: str, resources: Collection[str], work: Callable[[dg.OpExecutionContext], None]
) -> dg.OpDefinition:
    """Build an op that yields its output before it fails, so that downstream steps run; a retry is raised at once."""

    @dg.op(
        name=name,
        description=description,
        required_resource_keys=set(resources),
        ins={"above": dg.In(dg.Nothing)},
        out=dg.Out(dg.Nothing),
    )
    def step(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        fault: Exception | None = None
        try:
            work(context)
        except dg.RetryRequested:
            raise
        except Exception as error:  # noqa: BLE001 - raised again below
            fault = failed(error)
        yield dg.Output(None)
        if fault is not None:
            raise fault

    return step


def _step(code: LineageCode, task: Task) -> dg.OpDefinition:
    return op_failing_after_output(
        op_of(task.main),
        f"Publish what is stale of {', '.join(task.datasets)}",
        {*RESOURCES, "request"},
        lambda context: Refresh(context, code).task(task),
    )


class Refresh:
    """One step of a `refresh` run."""

    def __init__(self, context: dg.OpExecutionContext, code: LineageCode) -> None:
        self._context = context
        self._code = code
        self._access = access_of(context)
        self._request: Request = context.resources.request
        self._accepted = accepted(context)
        self._held_before = self._request.held_before(self._planner().held)
        self._waiting: Mapping[str, PlatformError] = {}
        self._checks = ShownChecks(context)

    def task(self, task: Task) -> None:
        """Compute the stale and the requested partitions of a task; fail if some failed, or are newly held."""
        request = self._request
        if not self._is_selected(task):
            return
        if set(task.datasets) & self._code.graph.downstream(request.blocked):
            blocked = ", ".join(sorted(request.blocked))
            raise failed(
                PlatformError(
                    what=f"the ledger of {blocked} does not add up, and nothing is made of it in this run",
                    where=task.main,
                    next_step=Remedy("see what is missing, and how to compute it again: ", ShowLedger()),
                )
            )
        faults: dict[str, PlatformError] = {}
        asked = self._again(task)
        ran: dict[str, str] = {}
        # Of what is asked for again only a part is claimed at a time, so that it blocks nobody for long.
        most = MOST_AGAIN if request.is_again and not task.in_order else None
        planner, passes = self._planner(), 0
        # Partitions may make others of their own dataset stale: repeat until none is left.
        while todo := self._left(task, planner, asked, ran, passes):
            with self._claimed(task, sorted(todo)[:most]) as mine:
                if not mine:
                    self._context.log.warning(
                        f"{task.main} is left to the run that executes it; what it leaves is stale"
                    )
                    break
                # Another run may have computed some of these before its claim ended.
                asked = self._again(task)
                self._waiting = planner.waiting(task)
                left = self._left(task, self._planner(), asked, ran, passes, among=mine)
                self._not_asked = left.keys() - asked
                for batch in self._batches(task, sorted(left)):
                    faults = {key: fault for key, fault in faults.items() if key not in batch}
                    faults.update(self._batch(task, batch))
            ran |= {**dict.fromkeys(mine, _ASKED), **left}
            planner, passes = self._planner(), passes + 1
        held = self._newly_held(task, planner)
        if ran or held:
            self._judge_waiting(task, faults, planner)
        # Only the run that first finds a held partition fails; the check `waiting` stays red.
        faults.update(held)
        if faults:
            show_failed(self._context, task, faults)
            raise failed(joined(faults, where=task.main, outcome="were not published"))

    def _newly_held(self, task: Task, planner: Planner) -> dict[str, PlatformError]:
        return {
            key: why
            for dataset, found in planner.held(task).items()
            for key, why in found.items()
            if key not in self._held_before.get(dataset, {})
        }

    def _again(self, task: Task) -> set[str]:
        request, access, graph = self._request, self._access, self._code.graph
        versions = request.asked_at(lambda: access.lake.versions(graph.contracts)) if request.only_again else None
        keys = self._requested(task)
        if not keys:
            return set()
        published = access.events.publications(task.main)
        # A resumed run continues: partitions it has already published itself are done.
        left = {key for key in keys if key not in published or published[key].run_id != self._context.run_id}
        if versions is None or not left:
            return left
        tasks = {graph.task_of(edge.above).main for edge, _ in graph.edges(task) if edge.above in graph.contracts}
        # What this run does not compute need not be newer than its request.
        above = [one for main in tasks - {task.main} if self._is_selected(one := graph.task_of(main))]
        asked = {name: self._requested(one) for one in above for name in one.datasets}
        return left - Since(access.events, versions).done(task.datasets, left, asked)

    def _is_selected(self, task: Task) -> bool:
        return not self._request.datasets or not set(task.datasets).isdisjoint(self._request.datasets)

    def _requested(self, task: Task) -> set[str]:
        keys = {key for dataset in task.datasets for key in self._request.again.get(dataset, ())}
        if self._request.span:
            window = Window.parsed(self._request.span)
            keys |= {key for key in self._planner().computable(task) if window.holds(key, task.grain)}
        return keys

    def _left(
        self,
        task: Task,
        planner: Planner,
        asked: Collection[str],
        ran: Mapping[str, str],
        passes: int,
        among: Collection[str] | None = None,
    ) -> dict[str, str]:
        """Return the partitions to compute, each with the input state that it lacks.

        Each partition runs once, since one whose inputs change all the time would run for ever. Only one that continues
        from an earlier partition runs again, if that has changed meanwhile: this ends with the newest partition. Each
        pass runs four times as many: a batch costs about the same whatever its size. A replay computes nothing ahead.
        """
        todo = {**dict.fromkeys(set(asked) - ran.keys(), _ASKED), **self._stale(task, planner, first=not ran)}
        again = planner.continuing(task, after=ran)
        left = {key: state for key, state in todo.items() if key not in ran or (key in again and ran[key] != state)}
        count = 0 if self._request.only_again else 4 ** max(passes - 1, 0) - 1
        found = {**dict.fromkeys(planner.ahead(task, left.keys() & again, count), _ASKED), **left}
        return found if among is None else {key: found[key] for key in found.keys() & set(among)}

    def _stale(self, task: Task, planner: Planner, *, first: bool) -> dict[str, str]:
        if self._request.only_again:
            return {}
        few = self._request.few_again if first else 0
        stale = planner.in_lane(task, planner.stale(task), Lane(self._request.lane), few=few)
        waiting = {} if self._request.retry_waiting else planner.waiting(task)
        return {key: state for key, state in stale.items() if key not in waiting}

    def _planner(self) -> Planner:
        return Planner(
            graph=self._code.graph,
            look=Snapshot(self._access.landing_zone, self._access.events),
            accepted=self._accepted,
            scope=Scope(self._request.scope),
        )

    def _claimed(self, task: Task, todo: Collection[str]) -> AbstractContextManager[set[str]]:
        """Claim partitions; wait while other runs hold all of them. Each partition is computed by one run only.

        A table whose periods are executed in order is claimed whole. An automatic run does not wait: a backfill may
        hold the table or its partitions for hours, and all steps behind this one would wait, too. None is claimed then.
        """
        waits = self._request.scope == Scope.ALL.value
        return turns.claimed(self._access.lake, task, todo, self._context.log, waits=waits)

    def _batches(self, task: Task, keys: Sequence[str]) -> list[list[str]]:
        if not keys:
            return []
        if task.grain is None or isinstance(task.contracts[0].write, InOrder):
            return [list(keys)]
        published = self._access.events.publications(task.main)
        batches, rows = [list[str]()], 0
        for key in static_late_data_integrator.run_order(keys, stateful=task.continues):
            own = published[key].rows_in if key in published else MOST_ROWS // 1000
            if batches[-1] and rows + own > MOST_ROWS:
                batches, rows = [*batches, []], 0
            batches[-1].append(key)
            rows += own
        return [sorted(batch) for batch in batches]

    def _batch(self, task: Task, keys: Sequence[str]) -> Mapping[str, PlatformError]:
        done = self._computed(task, [] if task.grain is None else keys)
        if done.publications:
            published = {*keys} - {*done.faults}
            self._checks.show_waiting(task, {key: why for key, why in self._waiting.items() if key not in published})
        for publication in done.publications:
            # First: Dagster shows no evaluation that is older than the newest rows, unless it is of their run.
            self._checks.carry(publication.contract)
            for result in publication.checks():
                log_event(self._context, evaluation(result))
                if result.check_name == LEDGER and not result.passed:
                    self._request.block_downstream([publication.contract.dataset])
            for event in publication.materializations():
                log_event(self._context, event)
        for error in dict.fromkeys(done.faults.values()):
            for result in refused_checks(task, error):
                log_event(self._context, evaluation(result))
        return done.faults

    def _computed(self, task: Task, keys: Sequence[str]) -> Done:
        attempt = self._context.retry_number + 1
        try:
            return compute(self._context, self._code, task, keys, attempt=attempt, stale=self._not_asked)
        except PlatformError as error:
            if attempt <= MAX_RETRIES:
                raise failure(self._context, error) from error
            return Done(faults=dict.fromkeys(keys or [WHOLE_TABLE], error))

    def _judge_waiting(self, task: Task, faults: Mapping[str, PlatformError], planner: Planner) -> None:
        lasting = {key: error for key, error in faults.items() if not error.transient}
        if lasting:
            note_faults(self._access, self._code.graph, task, lasting)
            planner = self._planner()
        self._checks.show_waiting(task, planner.waiting(task), at_end=True)
