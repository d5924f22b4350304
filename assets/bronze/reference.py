"""bronze.users and bronze.devices: reference data, loaded in full."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from blogdata.errors import PlatformError
from blogdata.lake.commit import WHOLE_TABLE, Commit
from blogdata.orchestration.computation import computes
from blogdata.orchestration.landing import Landed, newest_day
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.ingestion import full_loader
from blogdata.patterns.ingestion.published_files import is_published
from blogdata.planning.snapshot import landed as landed_in
from blogdata.publish.partitions import Grain


@computes("bronze.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Load each day's full delivery next to the earlier ones, unless its size shows that it is broken."""
    landed = Landed.of(step, "users", Grain.DAY)
    _require_believable(step, landed)
    landed.announce_new_fields()
    lines = landed.lines().withColumnRenamed("partition", "load_date")
    return step.publish(user_rules.judge(lines), landed.source())


def _require_believable(step: Step, landed: Landed) -> None:
    """Refuse deliveries that are empty, truncated or far too large: users absent from a delivery are closed.

    A delivery is compared with the previous one. A delivery published from the same files was accepted then.
    """
    if full_loader.ACCEPT_SIZE in step.accepted:
        return
    published = step.events.publications("bronze.users")
    before = None
    for day in sorted({*published, *landed.partitions}):
        known, there = published.get(day), landed.partitions.get(day)
        if there is None or (known is not None and is_published(there, known.landed)):
            # By what landed: lines that were erased since make no delivery smaller.
            before = (known.rows_in if known else 0) or before
            continue
        try:
            full_loader.guard(before, landed.line_count(day), where=f"bronze.users {day}")
        except PlatformError as error:
            error.partitions = frozenset({day})
            raise
        before = landed.line_count(day)


@computes("bronze.devices")
def devices(step: Step) -> Mapping[str, Commit]:
    """Publish the newest complete delivery as a new copy, unless its size shows that it is broken."""
    # The planner's definition of a delivery: what staleness does not count must not be published.
    day = newest_day(landed_in(step.landing_zone, "devices", Grain.DAY), step.landing / "devices")
    landed = Landed.of(step, "devices", Grain.DAY, [day])
    last = step.events.publications("bronze.devices").get(WHOLE_TABLE)
    if full_loader.ACCEPT_SIZE not in step.accepted:
        full_loader.guard(last.rows_out if last else None, landed.line_count(day), where="bronze.devices")
    landed.require_published_lines()
    landed.announce_new_fields()
    rows = device_rules.judge(landed.lines().withColumn("load_date", F.col("partition")))
    state = landed.states()[day]
    source = Upstream(
        accounts={WHOLE_TABLE: landed.accounts()[day]},
        files={WHOLE_TABLE: landed.files()[day]},
        landed={WHOLE_TABLE: f"{day}:{state}"},
        # By the end of the state, too: a rewrite with the same size and time is another delivery.
        copy=f"v{day}-{state[:8]}{state[-4:]}",
    )
    return step.publish(rows, source)
