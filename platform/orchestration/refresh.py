"""The job `refresh`: one run brings the whole lineage up to date, scattered partitions of all datasets included.

Each task is one step, in the order of the lineage. A step determines what is stale when it starts, after its upstream
steps have published, and computes all of it in one commit per dataset. A step with failed partitions yields its output
first and fails then: downstream steps run on the good partitions, and failed ones were not published.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from errors import PlatformError
from errors.remedies import Remedy, Repair, ShowLedger
from lake.commit import WHOLE_TABLE
from orchestration import dead_runs, turns
from orchestration.checks import LEDGER
from orchestration.computation import (
    RESOURCES,
    Code,
    Done,
    accepted,
    access_of,
    compute,
    evaluation,
    log_event,
    refused_checks,
)
from orchestration.names import op_of, step_of
from orchestration.partition_faults import joined
from orchestration.retries import MAX_RETRIES, failed, failure
from orchestration.waiting import note_faults, waiting_check
from patterns.data_flow.concurrent_runner import ARRIVING
from planning.graph import Task
from planning.look import Snapshot
from planning.plan import Planner
from planning.staleness import Scope
from planning.window import Window
from publish.contract import Contract
from publish.writes import InOrder

JOB = "refresh"
MOST_ROWS = 20_000_000
"""Most input rows of one commit; larger work is split into several commits by rows, not at gaps."""
_ASKED = ""
"""State of a partition that a person requested: it runs whether or not it lacks any."""
_PRIORITY = "dagster/priority"
Work = Callable[[dg.OpExecutionContext], None]
Held = Mapping[str, Mapping[str, PlatformError]]
"""Dataset to its held partitions, each with the reason."""


class Request(dg.ConfigurableResource["Request"]):
    """Request of a `refresh` run; the default is everything that is stale.

    Args:
        datasets: Only these datasets; empty: all.
        scope: Which stale partitions count: `all`, `ready` (those that may run automatically) or `ended`.
        again: Dataset to partitions that run again, stale or not.
        span: Time window in which all known partitions run again, such as `2026-01-05T00..2026-01-07T00`; either end
            may be empty.
        only_again: Run only `again` and `span`; skip stale partitions that were not requested.
        retry_waiting: Retry permanently failed partitions even if their inputs are unchanged.
    """

    datasets: list[str] = Field(default_factory=list)
    scope: str = Scope.ALL.value
    again: dict[str, list[str]] = Field(default_factory=dict)
    span: str = ""
    only_again: bool = False
    retry_waiting: bool = True
    _blocked: set[str] = PrivateAttr(default_factory=set)
    _held_before: Held | None = PrivateAttr(default=None)

    def block_downstream(self, datasets: Sequence[str]) -> None:
        """Block everything downstream of the datasets for the rest of this run."""
        self._blocked.update(datasets)

    @property
    def blocked(self) -> frozenset[str]:
        """Datasets whose downstream is blocked in this run."""
        return frozenset(self._blocked)

    def held_before(self, look: Callable[[], Held]) -> Held:
        """Return the partitions that were held when this run started; computed by its first step, then cached."""
        if self._held_before is None:
            self._held_before = look()
        return self._held_before


class NotReady(PlatformError):
    """Raised when an upstream dataset failed a blocking check in the same run."""


def refresh_job(
    code: Code, *, first: dg.OpDefinition, served: Sequence[tuple[Contract, dg.OpDefinition]] = ()
) -> dg.JobDefinition:
    """Build the job.

    Args:
        code: The computations and the lineage.
        first: The op that prepares the landing zone.
        served: Contracts of what is served outside the lake, each with its op.
    """

    @dg.graph(name=JOB)
    def refresh() -> None:
        landing = first()
        done: dict[str, Any] = {}
        for task in code.graph.tasks:
            above = sorted({edge.above for edge, _ in code.graph.edges(task)} & done.keys())
            # Of the steps that may run, the executor takes the one of highest priority; this keeps the lineage order.
            step = _step(code, task).alias(step_of(task.main)).tag({_PRIORITY: str(-len(done))})
            done.update(dict.fromkeys(task.datasets, step([done[name] for name in above] or [landing])))
        for contract, serve in served:
            serve.alias(step_of(contract.dataset))([done[read.dataset] for read in contract.reads])

    return refresh.to_job(
        name=JOB,
        description="Compute whatever is stale, from the landing zone to what is served: every dataset, any partitions",
        executor_def=dead_runs.continue_past_failures,
        tags=ARRIVING,
    )


def op_failing_after_output(name: str, description: str, resources: Collection[str], work: Work) -> dg.OpDefinition:
    """Build an op that yields its output before it fails, so that downstream steps run anyway.

    Args:
        name: Name of the op.
        description: Description in the Dagster UI.
        resources: Keys of the resources it requires.
        work: The work of the step. `RetryRequested` is raised at once, any other exception after the output.
    """

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
            fault = error
        yield dg.Output(None)
        if fault is not None:
            raise fault

    return step


def _step(code: Code, task: Task) -> dg.OpDefinition:
    return op_failing_after_output(
        op_of(task.main),
        f"Publish what is stale of {', '.join(task.datasets)}",
        {*RESOURCES, "request"},
        lambda context: Refresh(context, code).task(task),
    )


class Refresh:
    """One step of a `refresh` run."""

    def __init__(self, context: dg.OpExecutionContext, code: Code) -> None:
        self._context = context
        self._code = code
        self._access = access_of(context)
        self._request: Request = context.resources.request
        self._accepted = accepted(context)
        self._held_before = self._request.held_before(self._planner().held)

    def task(self, task: Task) -> None:
        """Compute the stale and the requested partitions of a task.

        Raises:
            RetryRequested: A transient fault, as long as attempts are left.
            Failure: Partitions failed or are newly held, and the others are published; or the ledger of an upstream
                dataset does not balance, and nothing was computed.
        """
        request = self._request
        if request.datasets and not set(task.datasets) & set(request.datasets):
            return
        if set(task.datasets) & self._code.graph.downstream(request.blocked):
            raise failed(_not_ready(task, request.blocked))
        faults: dict[str, PlatformError] = {}
        asked = self._again(task)
        ran: dict[str, str] = {}
        planner = self._planner()
        # Partitions may make others of their own dataset stale: repeat until none is left.
        while todo := self._left(task, planner, asked, ran):
            with self._claimed(task, todo) as mine:
                if not mine:
                    self._context.log.info(f"{task.main} is left to the run that executes it; what it leaves is stale")
                    break
                # Another run may have computed some of these before its claim ended.
                left = self._left(task, self._planner(), asked, ran, among=mine)
                for batch in self._batches(task, sorted(left)):
                    faults = {key: fault for key, fault in faults.items() if key not in batch}
                    faults.update(self._batch(task, batch))
            ran |= {**dict.fromkeys(mine, _ASKED), **left}
            planner = self._planner()
        held = self._newly_held(task, planner)
        if ran or held:
            self._judge_waiting(task, faults, planner)
        # Only the run that first finds a held partition fails; the check `waiting` stays red.
        faults.update(held)
        if faults:
            raise failed(joined(faults, where=task.main, outcome="were not published"))

    def _newly_held(self, task: Task, planner: Planner) -> dict[str, PlatformError]:
        held = planner.held()
        return {
            key: why
            for dataset in task.datasets
            for key, why in held.get(dataset, {}).items()
            if key not in self._held_before.get(dataset, {})
        }

    def _again(self, task: Task) -> set[str]:
        keys = {key for dataset in task.datasets for key in self._request.again.get(dataset, ())}
        if self._request.span:
            window = Window.parsed(self._request.span)
            keys |= {key for key in self._planner().known(task) if window.holds(key, task.grain)}
        published = self._access.events.publications(task.main)
        # A resumed run continues: partitions it has already published itself are done.
        return {key for key in keys if key not in published or published[key].run_id != self._context.run_id}

    def _left(
        self,
        task: Task,
        planner: Planner,
        asked: Collection[str],
        ran: Mapping[str, str],
        among: Collection[str] | None = None,
    ) -> dict[str, str]:
        """Return the partitions to compute, each with the input state that it lacks.

        Each partition runs once, since one whose inputs change all the time would run for ever. Only one that continues
        from an earlier partition runs again, if that has changed meanwhile: this ends with the newest partition.
        """
        todo = {**dict.fromkeys(set(asked) - ran.keys(), _ASKED), **self._stale(task, planner)}
        again = planner.continuing(task, after=ran)
        return {
            key: state
            for key, state in todo.items()
            if (among is None or key in among) and (key not in ran or (key in again and ran[key] != state))
        }

    def _stale(self, task: Task, planner: Planner) -> dict[str, str]:
        if self._request.only_again:
            return {}
        stale = planner.stale(task)
        waiting = {} if self._request.retry_waiting else planner.waiting(task)
        return {key: state for key, state in stale.items() if key not in waiting}

    def _planner(self) -> Planner:
        return Planner(
            graph=self._code.graph,
            look=Snapshot(self._access.landing_zone, self._access.events),
            accepted=self._accepted,
            scope=Scope(self._request.scope),
        )

    @contextmanager
    def _claimed(self, task: Task, todo: Collection[str]) -> Iterator[set[str]]:
        """Claim partitions; wait while other runs hold all of them. Each partition is computed by one run only.

        A table whose periods are executed in order is claimed whole. An automatic run does not wait for it: a backfill
        may hold it for hours, and all steps behind this one would wait, too. None is claimed then.
        """
        waits = not task.in_order or self._request.scope == Scope.ALL.value
        with turns.claimed(self._access.lake, task, todo, self._context.log, waits=waits) as mine:
            yield mine

    def _batches(self, task: Task, keys: Sequence[str]) -> list[list[str]]:
        if not keys:
            return []
        if task.grain is None or isinstance(task.contracts[0].write, InOrder):
            return [list(keys)]
        published = self._access.events.publications(task.main)
        batches, rows = [list[str]()], 0
        for key in keys:
            own = published[key].rows_in if key in published else MOST_ROWS // 1000
            if batches[-1] and rows + own > MOST_ROWS:
                batches, rows = [*batches, []], 0
            batches[-1].append(key)
            rows += own
        return batches

    def _batch(self, task: Task, keys: Sequence[str]) -> Mapping[str, PlatformError]:
        done = self._computed(task, [] if task.grain is None else keys)
        for publication in done.publications:
            for event in publication.materializations():
                log_event(self._context, event)
            for result in publication.checks():
                log_event(self._context, evaluation(result))
                if result.check_name == LEDGER and not result.passed:
                    self._request.block_downstream([publication.contract.dataset])
        for error in dict.fromkeys(done.faults.values()):
            for result in refused_checks(task, error):
                log_event(self._context, evaluation(result))
        return done.faults

    def _computed(self, task: Task, keys: Sequence[str]) -> Done:
        attempt = self._context.retry_number + 1
        try:
            return compute(self._context, self._code, task, keys, attempt=attempt)
        except PlatformError as error:
            if attempt <= MAX_RETRIES:
                raise failure(self._context, error) from error
            return Done(faults=dict.fromkeys(keys or [WHOLE_TABLE], error))

    def _judge_waiting(self, task: Task, faults: Mapping[str, PlatformError], planner: Planner) -> None:
        lasting = {key: error for key, error in faults.items() if not error.transient}
        if lasting:
            note_faults(self._access, self._code.graph, task, lasting)
            planner = self._planner()
        waiting = planner.waiting(task)
        for contract in task.contracts:
            log_event(self._context, evaluation(waiting_check(contract, waiting)))


def _not_ready(task: Task, refused: Collection[str]) -> NotReady:
    return NotReady(
        what=f"the ledger of {', '.join(sorted(refused))} does not add up, and nothing is made of it in this run",
        where=task.main,
        next_step=Remedy("look at it: ", ShowLedger(), "; mend what is missing: ", Repair()),
    )
