"""Builds Dagster assets from a stream: one run processes the new input, and reports each batch that it appended."""

import time

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.landing.lines import Bounds
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.runs.checks import check_specs
from blogdata.runs.computation import RESOURCES, Publication, access_of, report_refused, run_context
from blogdata.runs.dataset import deps, described, outputs
from blogdata.runs.retries import failing_after_output
from blogdata.runs.step import Step
from blogdata.stream import stream as streams
from blogdata.stream.stream import Place, Stream


def streamed(stream: Stream, *, version: str) -> dg.AssetsDefinition:
    """Build the asset definition of a stream's datasets; one run processes all available input and ends."""

    def tick(context: dg.AssetExecutionContext) -> None:
        access, run, began = access_of(context), run_context(context, version), time.monotonic()
        deployment, landing = context.resources.deployment, access.landing_path
        settings = deployment.settings()
        bounds = Bounds.of(settings)
        place = Place(lake=access.lake, landing=landing, run=run, bounds=bounds, home=settings.home)
        unbalanced: list[str] = []
        fault: PlatformError | None = None
        with context.resources.spark.guard() as spark:
            try:
                streams.run(spark, stream, place, checkpoints=access.checkpoints_path)
            except PlatformError as error:
                fault = error
            # The batches before a failed one are committed and stay.
            for contract in stream.contracts:
                step = Step(
                    contract=contract, partitions=(), spark=spark, access=access, deployment=deployment, run=run
                )
                for commit in reversed(place.commits(contract.dataset)):
                    seconds = time.monotonic() - began
                    publication = Publication(contract=contract, step=step, commit=commit, seconds=seconds)
                    unbalanced += publication.report(context)
        if fault is not None:
            report_refused(context, fault, stream.contracts)
            raise fault
        if unbalanced:
            raise dg.Failure(f"checks failed: {', '.join(unbalanced)}", allow_retries=False)

    contracts, more = stream.contracts, {"stream": stream.name}
    made = dg.multi_asset(
        name=f"stream_{stream.name}",
        specs=[dg.AssetSpec(**described(c, version), deps=deps(c)).merge_attributes(metadata=more) for c in contracts],
        check_specs=[spec for contract in contracts for spec in check_specs(contract)],
        required_resource_keys=set(RESOURCES),
        pool=pool_of(f"stream.{stream.name}"),
    )
    return made(failing_after_output(tick, outputs))
