"""ops: what the platform tells others about itself."""

from pathlib import Path

import dagster as dg

from orchestration.dataset import failure, key_of
from orchestration.step import LakeAccess
from patterns.core.errors import PlatformError
from patterns.observability import dataset_tracker
from quality.contracts import CONTRACTS

LINEAGE = dg.AssetKey(["ops", "lineage"])
FOLDER = "openlineage"


class LineageConfig(dg.Config):
    """Where the events are written.

    Args:
        folder: One file per publication goes here; empty: `openlineage` beside the landing zone.
    """

    folder: str = ""


@dg.asset(
    key=LINEAGE,
    description="Which publication read which versions of what, as OpenLineage events for a company's catalog",
    group_name="ops",
    owners=["team:platform"],
    kinds={"openlineage"},
    tags={"pattern/dataset-tracker": "", "pattern/fine-grained-tracker": ""},
    deps=[dg.AssetDep(key_of(name)) for name in CONTRACTS],
    required_resource_keys={"lake"},
)
def lineage(context: dg.AssetExecutionContext, config: LineageConfig) -> dg.MaterializeResult[None]:
    """Export the publications that were not exported yet, and show the graph that the newest ones make."""
    access: LakeAccess = context.resources.lake
    landing = access.landing_path
    folder = Path(config.folder) if config.folder else landing.parent / FOLDER
    try:
        written = dataset_tracker.export_openlineage(access.lake, CONTRACTS, landing=str(landing), folder=folder)
        graph = dataset_tracker.track(access.lake, access.events, CONTRACTS, landing=str(landing))
    except PlatformError as error:
        raise failure(context, error) from error
    return dg.MaterializeResult(
        metadata={
            "exported": written,
            "folder": dg.MetadataValue.path(str(folder)),
            "edges": dg.MetadataValue.table(
                records=[
                    dg.TableRecord({"from": edge.source, "to": edge.target, "newest_version_read": edge.version})
                    for edge in graph.edges
                ],
                schema=dg.TableSchema(
                    columns=[
                        dg.TableColumn("from"),
                        dg.TableColumn("to"),
                        dg.TableColumn("newest_version_read", type="int"),
                    ]
                ),
            ),
        }
    )
