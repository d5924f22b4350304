"""Builds Dagster assets from contracts and computations; policy is applied to all datasets in one place."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain, coarser, following
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.contract.schema import Classification, Column
from blogdata.operate.dagster_internals import WITHOUT_EVENT
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.planning.graph import Task
from blogdata.planning.reach import Within
from blogdata.runs.checks import check_specs, waiting_spec
from blogdata.runs.computation import RESOURCES, LineageCode, partitions_of
from blogdata.runs.driver import Driver
from blogdata.runs.names import asset_key, slug, step_of
from blogdata.runs.refresh_request import Request
from blogdata.runs.retries import failing_after_output

Calendar = Mapping[Grain, dg.TimeWindowPartitionsDefinition]
"""Partition definitions by grain."""


def calendar(first_day: str, last_day: str | None = None) -> Calendar:
    """Build the partition definitions of a deployment; without a last day, they go on until now."""
    monday = coarser(first_day, Grain.DAY, Grain.WEEK)
    end = following(last_day, Grain.DAY) if last_day else None
    week_end = following(coarser(last_day, Grain.DAY, Grain.WEEK), Grain.WEEK) if last_day else None
    # One partition beyond the last full one, so that the current hour, day and week can be materialized early.
    return {
        Grain.HOUR: dg.HourlyPartitionsDefinition(
            start_date=f"{first_day}T00", end_date=end and f"{end}T00", fmt=Grain.HOUR.key_format, end_offset=1
        ),
        Grain.DAY: dg.DailyPartitionsDefinition(
            start_date=first_day, end_date=end, fmt=Grain.DAY.key_format, end_offset=1
        ),
        Grain.WEEK: dg.WeeklyPartitionsDefinition(
            start_date=monday, end_date=week_end, fmt=Grain.WEEK.key_format, day_offset=1, end_offset=1
        ),
    }


def assets(code: LineageCode, calendar: Calendar) -> list[dg.AssetsDefinition]:
    """Build one asset definition per task that has a computation."""
    # Single-run backfills are marked beta in this Dagster; it is pinned, and the backfills are tested.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return [_asset(code, calendar, task) for task in code.graph.tasks if task.main in code.computations]


def _asset(code: LineageCode, calendar: Calendar, task: Task) -> dg.AssetsDefinition:
    def compute(context: dg.AssetExecutionContext) -> None:
        keys = [WHOLE_TABLE] if task.grain is None else partitions_of(context, task.main)
        request = Request(datasets=[task.main], again={task.main: keys}, only_again=True)
        if failed := Driver.run(code, task, context.op_execution_context, request):
            # As Dagster ends a step whose blocking checks failed: nothing below it runs.
            raise dg.Failure(f"checks failed: {', '.join(failed)}", allow_retries=False)

    made = dg.multi_asset(
        name=step_of(task.main),
        specs=[dg.AssetSpec(**described(contract, code.version), deps=deps(contract)) for contract in task.contracts],
        partitions_def=None if task.grain is None else calendar[task.grain],
        check_specs=[spec for contract in task.contracts for spec in [*check_specs(contract), waiting_spec(contract)]],
        backfill_policy=dg.BackfillPolicy.single_run() if task.grain else None,
        pool=pool_of(task.main),
        required_resource_keys=set(RESOURCES),
        # The step publishes the datasets together and reports their checks: Dagster executes no part of it alone.
        can_subset=False,
    )
    return made(failing_after_output(compute, outputs))


def described(contract: Contract, version: str) -> dict[str, Any]:
    """Return what Dagster shows of an asset; the same for batch, streamed and served datasets."""
    return {
        "key": asset_key(contract.dataset),
        "description": contract.description,
        "group_name": contract.layer,
        "owners": [contract.owner],
        "kinds": {"spark", "deltalake", contract.layer},
        "tags": {f"pattern/{slug(name)}": "" for name in contract.labels},
        "metadata": {
            "dagster/column_schema": column_schema(contract),
            "dagster/table_name": contract.dataset,
            "patterns": list(contract.labels),
        },
        "code_version": version,
    }


def column_schema(contract: Contract) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=column.name,
                type=column.type.lower(),
                description=column.description,
                constraints=dg.TableColumnConstraints(nullable=column.nullable, unique=contract.key == (column.name,)),
                tags=_tags(column),
            )
            for column in contract.columns
        ],
        constraints=dg.TableConstraints(other=[f"{rule.name}: {rule.expression}" for rule in contract.rules]),
    )


def _tags(column: Column) -> dict[str, str]:
    classification = Classification.PERSONAL if column.personal else column.classification
    tags = {"classification": classification.value}
    if column.subject is not None and column.subject.how is not None:
        tags |= {"subject": column.subject.whose.value, "identifies": column.subject.how.value}
    return tags


def deps(contract: Contract) -> list[dg.AssetDep]:
    """Return a dataset's inputs with their partition mappings; only the planner handles a dataset that reads itself."""
    return [
        dg.AssetDep(asset_key(read.dataset), partition_mapping=_mapping(read))
        for read in contract.reads
        if read.dataset != contract.dataset
    ]


def _mapping(read: Read) -> dg.PartitionMapping | None:
    if not isinstance(read.reach, Within):
        return None
    # A day or week has no hours beyond the deployment's end, or beyond now; without the flag, no backfill has it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)


def outputs(context: dg.AssetExecutionContext) -> Iterator[dg.Output[None]]:
    """Yield the outputs of an asset whose step logs its events and checks itself."""
    for output in context.op_execution_context.op_def.output_defs:
        yield dg.Output(None, output.name, metadata={WITHOUT_EVENT: True})
