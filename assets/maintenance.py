"""ops: the maintenance of the tables, by what their logs tell of their files."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone

import dagster as dg

from assets.code_version import version
from blogdata.orchestration.computation import run_context
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.maintenance import OWN, Done, Due, Fault, Inspection, Upkeep, look, maintain
from blogdata.orchestration.retries import failure
from blogdata.orchestration.upkeep import actions
from quality.contracts import EVERY

MAINTAINED = dg.AssetKey(["ops", "maintained_tables"])


@dg.asset(
    key=MAINTAINED,
    description="Small files that were compacted, and files that were removed because nobody needs them",
    group_name="ops",
    owners=["team:platform"],
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
        now=datetime.now(timezone.utc),
        run=run_context(context, version()),
        spark=context.resources.spark.guard,
        engine=access.engine,
        probe=access.probe,
    )
    found = list(maintain(upkeep, actions(EVERY.values()), (*EVERY.values(), *OWN)))
    done, faults = [one for one in found if isinstance(one, Done)], [one for one in found if isinstance(one, Fault)]
    for fault in faults:
        context.log.error(f"{fault.dataset} is left: {fault.error}")
    if faults:
        raise failure(context, faults[0].error)
    return dg.MaterializeResult(
        metadata={
            "done": sum(not one.left for one in done),
            "left": sum(bool(one.left) for one in done),
            **({"tables": dg.MetadataValue.table([_record(one) for one in done])} if done else {}),
        }
    )


def what_is_due(access: LakeResource) -> Iterator[Due | Fault]:
    """Find the work that is due, without Spark."""
    seen = Inspection(lake=access.lake, events=access.events, now=datetime.now(timezone.utc))
    return look(seen, actions(EVERY.values()), (*EVERY.values(), *OWN))


def _record(done: Done) -> dg.TableRecord:
    due = {**asdict(done.due), "partitions": len(done.due.partitions)}
    return dg.TableRecord({**due, "files_after": done.files, "bytes_after": done.bytes, "left": done.left})
