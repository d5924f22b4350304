"""The job `retention`: what is older than its contract keeps it leaves the tables, the landing zone and the disk."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from pydantic import Field

from assets.code import code
from blogdata.lake import retired
from blogdata.lake.lake import Lake
from blogdata.operations.job import operation
from blogdata.orchestration.computation import run_context
from blogdata.orchestration.expiry import Expired, Retention
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.maintenance import Done, Fault, Upkeep, maintain
from blogdata.orchestration.metadata import table
from blogdata.orchestration.vacuuming import Vacuuming
from blogdata.patterns.data_value import lake_views
from blogdata.planning import clock
from blogdata.publish import refused
from quality.contracts import EVERY, GRAPH
from quality.contracts.streams import streamed_inputs

KEPT = {name: contract.replaced_kept for name, contract in EVERY.items() if contract.replaced_kept is not None}
"""Datasets stored in several tables, and how long a table is kept after it was last visible."""


class RetentionConfig(dg.Config):
    """What a run removes."""

    only_plan: bool = Field(False, description="Only show which partitions have expired, and remove nothing")


def enforce(context: dg.OpExecutionContext, config: RetentionConfig) -> Mapping[str, Any]:
    """Expire partitions by the days of the contracts, remove copies whose time is over, then the files of all these.

    Raises:
        PlatformError: The rest of a table could not be removed; that of the others was.
    """
    access: LakeResource = context.resources.lake
    run = run_context(context, code().version)
    retention = Retention(
        events=access.events,
        zone=access.landing_zone,
        graph=GRAPH,
        streams=streamed_inputs(access.checkpoints_path),
        run=run,
    )
    now = clock.now()
    if config.only_plan:
        return {"removed": False, **_shown(retention.look(now))}
    left = retention.expire(now)
    for name, rows in left.rows_of.items():
        context.log.info(f"{name}: {sum(rows.values()):,} rows of {len(rows):,} partitions have expired")
    removed = copies(access.lake)
    batches = refused.expire(access.lake, now=datetime.now(timezone.utc))
    upkeep = Upkeep(
        lake=access.lake,
        events=access.events,
        now=datetime.now(timezone.utc),
        run=run,
        spark=context.resources.spark.guard,
    )
    vacuumed = list(maintain(upkeep, [Vacuuming()], EVERY.values()))
    faults = [one for one in vacuumed if isinstance(one, Fault)]
    for fault in faults:
        context.log.error(f"{fault.dataset} is left: {fault.error}")
    if faults:
        raise faults[0].error
    return {
        "removed": True,
        **_shown(left),
        **removed,
        "refused_batches_expired": len(batches),
        "files_vacuumed": sum(one.due.files for one in vacuumed if isinstance(one, Done)),
    }


def copies(lake: Lake) -> Mapping[str, Any]:
    """Remove the copies and replaced tables whose time is over, and return which; never what is visible."""
    # Views first, so that none refers to a removed table.
    lake_views.write(lake, list(EVERY.values()))
    gone = [(name, one) for name, keep in KEPT.items() for one in retired.remove(lake, name, keep=keep)]
    rows = [
        {
            "dataset": name,
            "table": one.location,
            "visible_until": "never" if one.visible_until is None else f"{one.visible_until:%Y-%m-%dT%H:%M:%S%z}",
            "rows": one.rows,
            "bytes": one.bytes,
        }
        for name, one in gone
    ]
    return {
        "copies_removed": len(rows),
        "bytes_of_copies": sum(one.bytes for _, one in gone),
        **table("copies", rows),
    }


def _shown(expired: Expired) -> dict[str, Any]:
    rows = [
        {"dataset": name, "partitions": len(of), "rows": sum(of.values()), "first": min(of), "last": max(of)}
        for name, of in expired.rows_of.items()
    ]
    return {
        "rows_expired": sum(sum(of.values()) for of in expired.rows_of.values()),
        "landed_partitions_removed": len(expired.landed),
        **table("partitions", rows),
    }


job = operation(
    "retention",
    RetentionConfig,
    enforce,
    description="Remove what is older than its contract keeps it: rows with their landed files, copies and replaced "
    "tables, refused batches; then the files that nobody needs any more",
)
