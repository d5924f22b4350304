"""ops: the lineage export, the report, and the maintenance of the tables, by what their logs tell of their files."""

from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from assets.code_version import version
from blogdata.patterns.observability import dataset_tracker
from blogdata.patterns.observability.dataset_tracker import Lineage
from blogdata.runs.computation import ops_asset, run_context
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import table
from blogdata.runs.retries import failure, reported
from blogdata.runs.upkeep import OWN, Done, Fault, Upkeep, maintain
from blogdata.watch import report as report_figures
from blogdata.watch.report_page import FILE
from quality.contracts import DECLARED, EVERY

FOLDER = "openlineage"


@ops_asset(
    description="Which publication read which versions of what, as OpenLineage events for a company's catalog: of "
    "every dataset, those of streams and what databases are served among them",
    kinds={"openlineage"},
    tags={"pattern/dataset-tracker": "", "pattern/fine-grained-tracker": ""},
    required_resource_keys={"lake"},
)
def lineage(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Export the publications not exported yet, and show the lineage graph of the newest ones."""
    access: LakeResource = context.resources.lake
    landing = access.landing_path
    folder = landing.parent / FOLDER
    with reported(context):
        written = dataset_tracker.export_openlineage(
            access.lake, access.events, DECLARED, landing=str(landing), folder=folder
        )
        graph = dataset_tracker.track(access.lake, access.events, DECLARED, landing=str(landing))
    edges = [{"from": above, "to": below, "newest_version_read": read} for (above, below), read in graph.edges.items()]
    return dg.MaterializeResult(
        metadata={
            "exported": written,
            "folder": dg.MetadataValue.path(str(folder)),
            **table("edges", edges),
            **table("datasets", [_dataset(graph, name) for name in graph.datasets()]),
        }
    )


def _dataset(graph: Lineage, name: str) -> dict[str, Any]:
    contract = graph.contracts.get(name)
    lists = {
        "used_by": contract.consumers if contract else (),
        "made_of": graph.upstream(name),
        "made_of_it": graph.downstream(name),
        "tell_before_a_change": graph.affected_teams(name),
    }
    return {
        "dataset": name,
        "owner": contract.owner if contract else "",
        **{key: ", ".join(sorted(of)) for key, of in lists.items()},
    }


@ops_asset(
    description="One page about the blog and its data: who reads what, what waits for a person, where every row went",
    kinds={"html"},
    required_resource_keys={"deployment"},
)
def report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Compute the figures from the tables and the event log, without Spark, and write the page."""
    settings = context.resources.deployment.settings()
    file = settings.home / FILE
    with reported(context):
        figures = report_figures.compute(settings)
        report_figures.write(figures, file)
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.path(str(file)),
            "findings": len(figures.data.findings),
            "bytes": file.stat().st_size,
        }
    )


@ops_asset(
    description="Small files that were compacted, and files that were removed because nobody needs them",
    kinds={"spark", "deltalake"},
    tags={"pattern/compactor": ""},
    required_resource_keys={"spark", "lake"},
)
def maintained_tables(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Do what is due, and report it; a table that another run publishes is left for the next time.

    A table that cannot be read fails the run when all others are done.
    """
    access: LakeResource = context.resources.lake
    upkeep = Upkeep(
        lake=access.lake,
        events=access.events,
        contracts=(*EVERY.values(), *OWN),
        now=datetime.now(timezone.utc),
        run=run_context(context, version()),
        spark=context.resources.spark.guard,
    )
    results = list(maintain(upkeep))
    faults = [result for result in results if isinstance(result, Fault)]
    for fault in faults:
        context.log.error(f"{fault.dataset} is left: {fault.error}")
    if faults:
        raise failure(context, faults[0].error)
    done = [result for result in results if isinstance(result, Done)]
    return dg.MaterializeResult(
        metadata={
            "done": sum(not result.left for result in done),
            "left": sum(bool(result.left) for result in done),
            **table("tables", [asdict(result) for result in done]),
        }
    )
