"""bronze.users and bronze.devices: reference data, loaded in full."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from errors import PlatformError
from lake.commit import WHOLE_TABLE, Commit
from orchestration.computation import computes
from orchestration.landing import Landed, newest_day
from orchestration.step import Source, Step
from patterns.ingestion import full_loader
from planning.look import landed as landed_in
from publish.partitions import Grain


@computes("bronze.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Load each day's full delivery beside the earlier ones, unless its size says that it is broken."""
    landed = Landed.of(step, "users", Grain.DAY)
    _require_believable(step, landed)
    lines = landed.lines().withColumnRenamed("partition", "load_date")
    return step.publish(user_rules.judge(lines), landed.source())


def _require_believable(step: Step, landed: Landed) -> None:
    """Refuse deliveries that are empty, cut off or far too large: whoever is absent from one is closed.

    A delivery is compared with the one before it. One that was published with the same files was accepted then.
    """
    if full_loader.SIZE in step.accepted:
        return
    published, fingerprints = step.events.publications("bronze.users"), landed.fingerprints()
    before = None
    for day in sorted({*published, *landed.partitions}):
        known = published.get(day)
        if day not in fingerprints or (known is not None and known.landed == fingerprints[day]):
            before = (known.rows_out if known else 0) or before
            continue
        try:
            full_loader.guard(before, landed.sizes[day].lines, where=f"bronze.users {day}")
        except PlatformError as error:
            error.partitions = frozenset({day})
            raise
        before = landed.sizes[day].lines


@computes("bronze.devices")
def devices(step: Step) -> Mapping[str, Commit]:
    """Keep the newest complete delivery as a copy of its own, unless its size says that it is broken."""
    # Asked as staleness asks: what it does not count as a delivery must not be published as one.
    day = newest_day(landed_in(step.landing_zone, "devices", Grain.DAY), step.landing / "devices")
    landed = Landed.of(step, "devices", Grain.DAY, [day])
    last = step.events.publications("bronze.devices").get(WHOLE_TABLE)
    if full_loader.SIZE not in step.accepted:
        full_loader.guard(last.rows_out if last else None, landed.sizes[day].lines, where="bronze.devices")
    rows = device_rules.judge(landed.lines().withColumn("load_date", F.col("partition")))
    fingerprint = landed.fingerprints()[day]
    source = Source(
        accounts={WHOLE_TABLE: landed.accounts()[day]},
        expected={WHOLE_TABLE: landed.expected_bytes()[day]},
        landed={WHOLE_TABLE: f"{day}:{fingerprint}"},
        copy=f"v{day}-{fingerprint[:8]}",
    )
    return step.publish(rows, source)
