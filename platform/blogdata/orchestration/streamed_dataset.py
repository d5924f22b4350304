"""Builds Dagster assets from a stream: one run processes the new input, and reports each dataset it appended to."""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import takewhile
from typing import Any

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.evidence import ledger
from blogdata.evidence.appended import appended
from blogdata.lake.commit import ROWS, Commit, Entry
from blogdata.lake.lake import Lake
from blogdata.orchestration import stream as streams
from blogdata.orchestration.checks import LEDGER, check_specs, failed_checks, ledger_result, passed_checks
from blogdata.orchestration.computation import RESOURCES, accepted, run_context
from blogdata.orchestration.dataset import deps, described
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.landing import bounds_of
from blogdata.orchestration.late_share import late_share_result, late_share_spec
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.retries import reported
from blogdata.orchestration.step import Step
from blogdata.orchestration.stream import Place, Stream
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.patterns.error_management.streamed_files import left_out_in, left_out_warnings
from blogdata.publish.contract import Contract


def streamed(
    stream: Stream,
    contracts: Mapping[str, Contract],
    *,
    version: str,
) -> dg.AssetsDefinition:
    """Build the asset definition of a stream's datasets; one run processes all available input and ends."""

    @dg.multi_asset(
        name=f"stream_{stream.name}",
        specs=[
            dg.AssetSpec(
                **described(contracts[name], version), deps=deps(contracts[name]), skippable=True
            ).merge_attributes(metadata={"stream": stream.name})
            for name in stream.datasets
        ],
        check_specs=[
            *(spec for name in stream.datasets for spec in check_specs(asset_key(name), contracts[name])),
            *(late_share_spec(asset_key(name)) for name in stream.without_late),
        ],
        required_resource_keys=set(RESOURCES),
        pool=pool_of(f"stream.{stream.name}"),
    )
    def tick(context: dg.AssetExecutionContext) -> Iterator[Any]:
        access: LakeResource = context.resources.lake
        run = run_context(context, version)
        before = {name: access.lake.version(name) for name in stream.datasets}
        settings = context.resources.deployment.settings()
        place = Place(
            lake=access.lake,
            landing=access.landing_path,
            run=run,
            engine=access.engine,
            probe=access.probe,
            accepted=accepted(context),
            bounds=bounds_of(settings),
            home=settings.home,
        )
        with reported(context), context.resources.spark.guard() as spark:
            steps = {
                name: Step(
                    contract=contracts[name],
                    partitions=(),
                    spark=spark,
                    access=access,
                    deployment=context.resources.deployment,
                    run=run,
                )
                for name in stream.datasets
            }
            try:
                streams.run(spark, stream, place, checkpoints=access.checkpoints_path)
            except Exception as fault:
                # The batches before the failed one are committed and stay.
                yield from _report(context, stream, steps, before, fault)
                raise
            yield from _report(context, stream, steps, before, None)

    return tick


def _report(
    context: dg.AssetExecutionContext,
    stream: Stream,
    steps: Mapping[str, Step],
    before: Mapping[str, int | None],
    fault: Exception | None,
) -> Iterator[Any]:
    for name, step in steps.items():
        key, contract = asset_key(name), step.contract
        late = [late_share_result(key, appended(step.lake, name))] if name in stream.without_late else []
        refused = fault if isinstance(fault, PlatformError) and fault.where == name else None
        failed = {check.check_name: check for check in (failed_checks(key, refused) if refused else ())}
        commits = added(step.lake, name, before[name])
        if commits:
            commit = reduce(_together, commits)
            left_out = left_out_in(commits)
            metadata: dict[str, Any] = {
                **commit.metadata(),
                ROWS: step.lake.rows(name, contract.partition_column, commit.version),
                "rows_appended": commit.rows_out,
                "stream": stream.name,
                **left_out,
            }
            for line in left_out_warnings(left_out):
                context.log.warning(line)
            _, passed = passed_checks(key, contract, step, commit)
            results = [*(failed.get(check.check_name, check) for check in passed), *late]
            version = dg.DataVersion(str(commit.version))
            yield dg.MaterializeResult(asset_key=key, metadata=metadata, check_results=results, data_version=version)
        elif fault is not None:
            yield from failed.values()
        else:
            yield from _unchanged_checks(key, step)
            yield from late


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
                description="nothing was added, nothing waits, and what is there was audited before it was published",
            )


def added(lake: Lake, dataset: str, since: int | None) -> list[Commit]:
    """List the commits a stream appended to a dataset after a version, oldest first.

    Args:
        since: Table version to start after; None if there was no table.
    """
    newer = takewhile(lambda commit: since is None or commit.version > since, appended(lake, dataset))
    return list(newer)[::-1]


def _together(earlier: Commit, later: Commit) -> Commit:
    entries: dict[str, Entry] = dict(earlier.entries)
    for key, entry in later.entries.items():
        entries[key] = entry.after(entries[key]) if key in entries else entry
    info = {**later.info, **{name: earlier.info[name] + later.info[name] for name in ("files", "bytes")}}
    return Commit(dataset=later.dataset, version=later.version, entries=entries, info=info)
