"""Turns a stream into Dagster assets: one run takes in what has come, and reports each dataset it has added to."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import dagster as dg

from orchestration import stream as streams
from orchestration.checks import check_specs, failed_checks, passed_checks
from orchestration.concurrent_runner import pool_of
from orchestration.dataset import ACCEPT, RESOURCES, failure, key_of, run_context, slug
from orchestration.lineage import column_schema
from orchestration.step import LakeAccess, Step
from orchestration.stream import Place, Stream
from patterns.core.commit import Commit, Entry
from patterns.core.contract import Contract
from patterns.core.errors import PlatformError
from patterns.core.run import code_version
from patterns.error_management.checkpointer import appended


def streamed(
    stream: Stream,
    contracts: Mapping[str, Contract],
    *,
    sources: Sequence[Path],
    deps: Mapping[str, Sequence[dg.AssetKey]],
) -> dg.AssetsDefinition:
    """Declare the datasets of a stream; a run of them is a tick.

    Args:
        stream: The stream.
        contracts: Of its datasets, by name.
        sources: Folders whose code computes them, for the code version.
        deps: Dataset to what it is made from.
    """
    version = code_version(*sources)

    @dg.multi_asset(
        name=f"stream_{stream.name}",
        specs=[
            dg.AssetSpec(
                key_of(name),
                deps=list(deps[name]),
                skippable=True,
                description=contracts[name].description,
                group_name=contracts[name].layer,
                owners=[contracts[name].owner],
                kinds={"spark", "deltalake", contracts[name].layer},
                tags={f"pattern/{slug(pattern)}": "" for pattern in contracts[name].patterns},
                code_version=version,
                metadata={
                    "dagster/column_schema": column_schema(contracts[name]),
                    "dagster/table_name": name,
                    "patterns": list(contracts[name].patterns),
                    "stream": stream.name,
                },
            )
            for name in stream.datasets
        ],
        check_specs=[spec for name in stream.datasets for spec in check_specs(key_of(name), contracts[name])],
        required_resource_keys=set(RESOURCES),
        pool=pool_of(f"stream.{stream.name}"),
    )
    def tick(context: dg.AssetExecutionContext) -> Iterator[Any]:
        access: LakeAccess = context.resources.lake
        run = run_context(context, version)
        before = {name: access.lake.version(name) for name in stream.datasets}
        place = Place(
            lake=access.lake,
            landing=access.landing_path,
            run=run,
            engine=access.engine,
            probe=access.probe,
            accepted=frozenset(context.run.tags.get(ACCEPT, "").split(",")),
        )
        try:
            with context.resources.spark.guard() as spark:
                streams.run(spark, stream, place, checkpoints=access.checkpoints_path)
                for name in stream.datasets:
                    commit = added(access, name, before[name])
                    if commit is None:
                        # The checks are asked for whether something was added or not.
                        for spec in check_specs(key_of(name), contracts[name]):
                            yield dg.AssetCheckResult(
                                asset_key=spec.asset_key,
                                check_name=spec.name,
                                passed=True,
                                description="nothing was added",
                            )
                        continue
                    step = Step(
                        contract=contracts[name],
                        partitions=(),
                        spark=spark,
                        access=access,
                        secrets=context.resources.secrets,
                        run=run,
                    )
                    _, results = passed_checks(key_of(name), contracts[name], step, commit)
                    metadata = {**commit.metadata(), "stream": stream.name}
                    yield dg.MaterializeResult(asset_key=key_of(name), metadata=metadata, check_results=results)
        except PlatformError as error:
            for name in stream.datasets:
                yield from failed_checks(key_of(name), contracts[name], error) if error.where == name else ()
            raise failure(context, error) from error

    return tick


def added(access: LakeAccess, dataset: str, since: int | None) -> Commit | None:
    """Give all that a stream has added to a dataset since a version, as one commit; None when it was nothing.

    Args:
        access: The lake.
        dataset: Name as `layer.table`.
        since: Version before; None when there was no table.
    """
    commits: list[Commit] = []
    for commit in appended(access.lake, dataset):
        if since is not None and commit.version <= since:
            break
        commits.append(commit)
    return reduce(_together, reversed(commits)) if commits else None


def _together(earlier: Commit, later: Commit) -> Commit:
    entries: dict[str, Entry] = dict(earlier.entries)
    for key, entry in later.entries.items():
        entries[key] = entry.after(entries[key]) if key in entries else entry
    info = {**later.info, **{name: earlier.info[name] + later.info[name] for name in ("files", "bytes")}}
    return Commit(dataset=later.dataset, version=later.version, entries=entries, info=info)
