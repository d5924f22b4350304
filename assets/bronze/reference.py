"""bronze.users and bronze.devices: reference data, loaded in full."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from orchestration.computation import computes
from orchestration.landing import Landed, newest_day
from orchestration.step import Source, Step
from patterns.core.commit import WHOLE_TABLE, Commit
from patterns.core.partitions import Grain
from patterns.ingestion import full_loader
from planning.look import landed as landed_in


@computes("bronze.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Load each day's full delivery beside the earlier ones."""
    landed = Landed.of(step, "users", Grain.DAY)
    lines = landed.lines().withColumnRenamed("partition", "load_date")
    return step.publish(user_rules.judge(lines), landed.source())


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
