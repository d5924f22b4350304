"""What all datasets that are served outside the lake have in common: their asset, their step, and what is requested."""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import dagster as dg

from blogdata.orchestration.checks import LEDGER
from blogdata.orchestration.computation import partitions_of
from blogdata.orchestration.dataset import Calendar, deps, described
from blogdata.orchestration.names import asset_key, op_of
from blogdata.orchestration.refresh import op_failing_after_output
from blogdata.orchestration.refresh_request import Request
from blogdata.orchestration.retries import reported
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.planning.selection import Window
from blogdata.publish.contract import Contract


def served_asset(
    contract: Contract,
    calendar: Calendar,
    version: str,
    deliver: Callable[[dg.AssetExecutionContext, list[str]], Iterator[Any]],
    *,
    kind: str,
    resources: Collection[str],
    balanced: str,
    checks: Sequence[dg.AssetCheckSpec] = (),
) -> dg.AssetsDefinition:
    """Build the asset of a served dataset: a backfill is one run, and one run at a time writes it."""
    assert contract.grain is not None
    key = asset_key(contract.dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)

        @dg.multi_asset(
            name="__".join(key.path),
            specs=[dg.AssetSpec(**{**described(contract, version), "kinds": {kind}}, deps=deps(contract))],
            partitions_def=calendar[contract.grain],
            backfill_policy=dg.BackfillPolicy.single_run(),
            pool=pool_of(contract.dataset),
            required_resource_keys=set(resources),
            check_specs=[dg.AssetCheckSpec(LEDGER, asset=key, blocking=True, description=balanced), *checks],
        )
        def asset(context: dg.AssetExecutionContext) -> Iterator[Any]:
            with reported(context):
                yield from deliver(context, partitions_of(context, contract.dataset))

    return asset


def served_step(
    contract: Contract, resources: Collection[str], deliver: Callable[[dg.OpExecutionContext], None]
) -> dg.OpDefinition:
    """Build the op of the job `refresh` that serves a dataset, unless the run is for other datasets."""

    def serve(context: dg.OpExecutionContext) -> None:
        request: Request = context.resources.request
        if not request.datasets or contract.dataset in request.datasets:
            deliver(context)

    return op_failing_after_output(op_of(contract.dataset), contract.description, {*resources, "request"}, serve)


def requested(
    request: Request, contract: Contract, sources: Sequence[str], there: Callable[[], Collection[str]]
) -> list[str] | None:
    """Find the partitions that a run was asked to serve, among those published; None if it serves whatever is due."""
    if request.span:
        window = Window.parsed(request.span)
        return [key for key in there() if window.holds(key, contract.grain)]
    if request.only_again:
        asked = {key for name in (*sources, contract.dataset) for key in request.again.get(name, ())}
        return sorted(asked & set(there()))
    return None
