"""The job `share`: views as SQL for other readers, and a dataset's files by name for those that know no Delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from blogdata import files
from blogdata.deliver import lake_views
from blogdata.errors import refuse_unknown
from blogdata.runs.job import operation
from blogdata.runs.names import table
from blogdata.table import manifest
from blogdata.table.lake import Lake
from quality.contracts import EVERY


class ShareConfig(dg.Config):
    """Which share begins, moves to the newest version, or ends."""

    dataset: str = Field("", description="A dataset without persons; empty: only the views, and a list of shares")
    withdraw: bool = Field(False, description="End the share; its old files may be deleted")


def _share(context: dg.OpExecutionContext, config: ShareConfig) -> Mapping[str, Any]:
    """Write the views; share the newest version of a dataset by a manifest of its files, or end its share.

    The files are kept until the share is withdrawn, or moved to a newer version by the next call.
    """
    lake: Lake = context.resources.lake.lake
    dataset = config.dataset
    refuse_unknown([dataset] if dataset or config.withdraw else [], EVERY, where="share")
    if dataset:
        with files.locked(manifest.home(lake) / f".{dataset}.lock"):
            manifest.withdraw(lake, dataset) if config.withdraw else manifest.share(lake, EVERY[dataset])
    views = lake_views.write(lake, list(EVERY.values()))
    rows = [
        {
            "dataset": name,
            "version": share.version,
            "since": share.since,
            "files": share.files,
            "rows": share.rows,
            "manifest": str(manifest.location(lake, name)),
        }
        for name in EVERY
        if (share := manifest.current(lake, name)) is not None
    ]
    return {"views": ", ".join(map(str, views)), "shared": len(rows), **table("shares", rows)}


job = operation(
    "share",
    ShareConfig,
    _share,
    description="Write the views for other readers as SQL into the lake; share the newest version of a dataset with "
    "those that know no Delta, by a manifest of its files",
)
