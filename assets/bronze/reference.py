"""bronze.users and bronze.devices: reference data, loaded in full."""

from pyspark.sql import functions as F

from assets.partitions import DAYS
from assets.policy import blog_dataset
from assets.sources import LANDING_DEVICES, LANDING_USERS
from assets.staleness import landed as deliveries
from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from orchestration.landing import Landed, newest_day
from orchestration.step import Step
from patterns.core.commit import WHOLE_TABLE, Commit
from patterns.core.partitions import Grain
from patterns.ingestion import full_loader


@blog_dataset("bronze.users", deps=[LANDING_USERS], partitions_def=DAYS)
def users(step: Step) -> Commit:
    """Load each day's full delivery beside the earlier ones."""
    landed = Landed.of(step, "users", Grain.DAY)
    lines = landed.lines().withColumnRenamed("partition", "load_date")
    return step.overwrite(
        user_rules.judge(lines),
        accounts=landed.accounts(),
        expected=landed.expected_bytes(),
        landed=landed.fingerprints(),
    )


@blog_dataset("bronze.devices", deps=[LANDING_DEVICES])
def devices(step: Step) -> Commit:
    """Keep the newest complete delivery as a copy of its own, unless its size says that it is broken."""
    # Asked as staleness asks: what it does not count as a delivery must not be published as one.
    day = newest_day(deliveries(step.landing, "devices", Grain.DAY), step.landing / "devices")
    landed = Landed.of(step, "devices", Grain.DAY, [day])
    last = step.events.publications("bronze.devices").get(WHOLE_TABLE)
    if full_loader.SIZE not in step.accepted:
        full_loader.guard(last.rows_out if last else None, landed.sizes[day].lines, where="bronze.devices")
    rows = device_rules.judge(landed.lines().withColumn("load_date", F.col("partition")))
    return step.keep_copy(
        rows,
        name=f"v{day}-{landed.fingerprints()[day][:8]}",
        accounts={WHOLE_TABLE: landed.accounts()[day]},
        expected={WHOLE_TABLE: landed.expected_bytes()[day]},
        landed={WHOLE_TABLE: f"{day}:{landed.fingerprints()[day]}"},
    )
