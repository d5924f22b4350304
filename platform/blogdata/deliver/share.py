"""The job `share`: views as SQL for other readers, and a dataset's files by name for those that know no Delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from blogdata import files
from blogdata.deliver import lake_views
from blogdata.errors import refuse_unknown
from blogdata.patterns.storage import manifest
from blogdata.runs.job import operation
from blogdata.runs.run_values import table
from blogdata.table import shares
from blogdata.table.lake import Lake
from blogdata.table.shares import Share
from quality.contracts import EVERY


class ShareConfig(dg.Config):
    """Which share begins, moves to the newest version, or ends."""

    dataset: str = Field("", description="A dataset without persons; empty: only the views, and a list of shares")
    withdraw: bool = Field(False, description="End the share; its old files may be deleted")


def share(lake: Lake, dataset: str, *, withdraw: bool) -> list[Share]:
    """Share the newest version of a dataset by a manifest of its files, or end the share; return what is shared now.

    The files are kept until the share is withdrawn, or moved to a newer version by the next call.
    """
    refuse_unknown([dataset] if dataset or withdraw else [], EVERY, where="share")
    if dataset:
        with files.locked(shares.home(lake) / f".{dataset}.lock"):
            manifest.withdraw(lake, dataset) if withdraw else manifest.share(lake, EVERY[dataset])
    return _shared(lake)


def _shared(lake: Lake) -> list[Share]:
    return [share for name in EVERY if (share := manifest.current(lake, name)) is not None]


def _do(context: dg.OpExecutionContext, config: ShareConfig) -> Mapping[str, Any]:
    lake: Lake = context.resources.lake.lake
    shared = share(lake, config.dataset, withdraw=config.withdraw)
    views = lake_views.write(lake, list(EVERY.values()))
    rows = [
        {
            "dataset": entry.dataset,
            "version": entry.version,
            "since": f"{entry.since:%Y-%m-%d %H:%M:%S}",
            "files": entry.files,
            "rows": entry.rows,
            "manifest": str(manifest.location(lake, entry.dataset)),
        }
        for entry in shared
    ]
    return {"views": ", ".join(map(str, views)), "shared": len(shared), **table("shares", rows)}


job = operation(
    "share",
    ShareConfig,
    _do,
    description="Write the views for other readers as SQL into the lake; share the newest version of a dataset with "
    "those that know no Delta, by a manifest of its files",
)
