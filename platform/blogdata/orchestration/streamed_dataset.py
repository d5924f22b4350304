"""Builds Dagster assets from a stream: one run processes the new input, and reports each dataset it appended to."""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import takewhile
from typing import Any

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.evidence import ledger
from blogdata.evidence.events import appended
from blogdata.lake.commit import ROWS, Commit, Entry
from blogdata.lake.lake import Lake
from blogdata.orchestration import stream as streams
from blogdata.orchestration.checks import LEDGER, check_specs, failed_checks, ledger_result, passed_checks
from blogdata.orchestration.computation import RESOURCES, access_of, run_context
from blogdata.orchestration.dataset import deps, described
from blogdata.orchestration.landing import bounds_of
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.retries import reported
from blogdata.orchestration.step import Step
from blogdata.orchestration.stream import Place, Stream
from blogdata.patterns.data_flow.concurrent_runner import pool_of


def streamed(stream: Stream, *, version: str) -> dg.AssetsDefinition:
    """Build the asset definition of a stream's datasets; one run processes all available input and ends."""

    @dg.multi_asset(
        name=f"stream_{stream.name}",
        specs=[
            dg.AssetSpec(**described(contract, version), deps=deps(contract), skippable=True).merge_attributes(
                metadata={"stream": stream.name}
            )
            for contract in stream.contracts
        ],
        check_specs=[
            spec for contract in stream.contracts for spec in check_specs(asset_key(contract.dataset), contract)
        ],
        required_resource_keys=set(RESOURCES),
        pool=pool_of(f"stream.{stream.name}"),
    )
    def tick(context: dg.AssetExecutionContext) -> Iterator[Any]:
        access, run = access_of(context), run_context(context, version)
        before = {name: access.lake.version(name) for name in stream.datasets}
        settings = context.resources.deployment.settings()
        place = Place(
            lake=access.lake,
            landing=access.landing_path,
            run=run,
            probe=access.probe,
            bounds=bounds_of(settings),
            home=settings.home,
        )
        with reported(context), context.resources.spark.guard() as spark:
            given: dict[str, Any] = {"spark": spark, "access": access, "deployment": context.resources.deployment}
            steps = [Step(contract=contract, partitions=(), run=run, **given) for contract in stream.contracts]
            try:
                streams.run(spark, stream, place, checkpoints=access.checkpoints_path)
            except Exception as fault:
                # The batches before the failed one are committed and stay.
                for step in steps:
                    yield from _report(context, stream, step, before, fault)
                raise
            for step in steps:
                yield from _report(context, stream, step, before, None)

    return tick


def _report(
    context: dg.AssetExecutionContext,
    stream: Stream,
    step: Step,
    before: Mapping[str, int | None],
    fault: Exception | None,
) -> Iterator[Any]:
    contract = step.contract
    key = asset_key(contract.dataset)
    refused = fault if isinstance(fault, PlatformError) and fault.where == contract.dataset else None
    failed = {check.check_name: check for check in (failed_checks(key, refused) if refused else ())}
    commits = added(step.lake, contract.dataset, before[contract.dataset])
    if commits:
        commit = reduce(_together, commits)
        metadata: dict[str, Any] = {
            **commit.metadata(),
            ROWS: step.lake.rows(contract.dataset, contract.partition_column, commit.version),
            "rows_appended": commit.rows_out,
            "stream": stream.name,
        }
        results = [failed.get(check.check_name, check) for check in passed_checks(key, contract, step, commit)]
        version = dg.DataVersion(str(commit.version))
        yield dg.MaterializeResult(asset_key=key, metadata=metadata, check_results=results, data_version=version)
    elif fault is not None:
        yield from failed.values()
    else:
        yield from _unchanged_checks(key, step)


def _unchanged_checks(key: dg.AssetKey, step: Step) -> Iterator[dg.AssetCheckResult]:
    """Report the checks of a dataset without new commits: Dagster requires a result for every check."""
    for spec in check_specs(key, step.contract):
        if spec.name == LEDGER:
            # Rows may have disappeared since; the table logs show it.
            yield ledger_result(key, ledger.audit(step.lake, step.events, step.contract))
        else:
            yield dg.AssetCheckResult(
                asset_key=key,
                check_name=spec.name,
                passed=True,
                description="nothing was added, and what is there was audited before it was published",
            )


def added(lake: Lake, dataset: str, since: int | None) -> list[Commit]:
    """List the commits a stream appended to a dataset after a version (None: there was no table), oldest first."""
    newer = takewhile(lambda commit: since is None or commit.version > since, appended(lake, dataset))
    return list(newer)[::-1]


def _together(earlier: Commit, later: Commit) -> Commit:
    entries: dict[str, Entry] = dict(earlier.entries)
    for key, entry in later.entries.items():
        entries[key] = entry.after(entries[key]) if key in entries else entry
    info = {**later.info, **{name: earlier.info[name] + later.info[name] for name in ("files", "bytes")}}
    return Commit(dataset=later.dataset, version=later.version, entries=entries, info=info)
