"""ops: the lineage export, the report, and the removal of retired tables."""

from datetime import datetime, timezone
from typing import Any

import dagster as dg

from assets.report import FILE
from assets.report import blog_report as report_figures
from blogdata.errors import PlatformError
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.metadata import table
from blogdata.orchestration.retries import failure
from blogdata.patterns.observability import dataset_tracker, openlineage
from blogdata.patterns.observability.dataset_tracker import Lineage
from quality.contracts import DECLARED

TEAM = "analytics"
"""Folder of the analytics team's results in the deployment's home."""
LINEAGE = dg.AssetKey(["ops", "lineage"])
FOLDER = "openlineage"
"""Folder beside the landing zone for one file per publication."""


@dg.asset(
    key=LINEAGE,
    description="Which publication read which versions of what, as OpenLineage events for a company's catalog: of "
    "every dataset, those of streams, what databases are served and another team's results among them",
    group_name="ops",
    owners=["team:platform"],
    kinds={"openlineage"},
    tags={"pattern/dataset-tracker": "", "pattern/fine-grained-tracker": ""},
    required_resource_keys={"lake"},
)
def lineage(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Export the publications not exported yet, and show the lineage graph of the newest ones."""
    access: LakeResource = context.resources.lake
    landing = access.landing_path
    folder = landing.parent / FOLDER
    try:
        # The checkpoints lie in the deployment's home.
        reported = openlineage.reported([access.checkpoints_path.parent / TEAM / openlineage.FOLDER])
        written = dataset_tracker.export_openlineage(
            access.lake, access.events, DECLARED, landing=str(landing), folder=folder, reported=reported
        )
        graph = dataset_tracker.track(access.lake, access.events, DECLARED, landing=str(landing), reported=reported)
    except PlatformError as error:
        raise failure(context, error) from error
    return dg.MaterializeResult(
        metadata={
            "exported": written,
            "folder": dg.MetadataValue.path(str(folder)),
            **table(
                "edges",
                [{"from": edge.source, "to": edge.target, "newest_version_read": edge.version} for edge in graph.edges],
            ),
            **table("datasets", [_dataset(graph, name) for name in graph.nodes]),
        }
    )


def _dataset(graph: Lineage, name: str) -> dict[str, Any]:
    node = graph.nodes[name]
    lists = {
        "used_by": node.consumers,
        "made_of": graph.upstream(name),
        "made_of_it": graph.downstream(name),
        "tell_before_a_change": graph.affected_teams(name),
    }
    return {"dataset": name, "owner": node.owner or "", **{key: ", ".join(sorted(of)) for key, of in lists.items()}}


REPORT = dg.AssetKey(["ops", "report"])


@dg.asset(
    key=REPORT,
    description="One page about the blog and its data: who reads what, what waits for a person, where every row went",
    group_name="ops",
    owners=["team:platform"],
    kinds={"html"},
    required_resource_keys={"lake"},
)
def report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Compute the figures from the tables and the event log, without Spark, and write the page."""
    access: LakeResource = context.resources.lake
    # The checkpoints lie in the deployment's home.
    file = access.checkpoints_path.parent / FILE
    try:
        found = report_figures.compute(
            access.lake,
            access.landing_zone,
            access.checkpoints_path,
            now=datetime.now(timezone.utc),
            days=report_figures.DAYS,
        )
    except PlatformError as error:
        raise failure(context, error) from error
    report_figures.write(found, file)
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.path(str(file)),
            "findings": len(found.data.findings),
            "bytes": file.stat().st_size,
        }
    )
