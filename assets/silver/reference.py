"""silver.users and silver.devices, reference data that visits join, and silver.users_current, as it is today."""

from pyspark.sql import functions as F

from assets import bronze
from assets.partitions import DAYS
from assets.policy import blog_dataset, delivered, newly_updated
from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from orchestration import accounts
from orchestration.step import Delivery, Step
from patterns.core.commit import Account, Commit


@blog_dataset("silver.users", deps=[bronze.users], automation=delivered())
def users(step: Step) -> Commit:
    """Derive the history of the users from all deliveries: a function of bronze, whatever the order of loads."""
    snapshots = step.read("bronze.users").where(F.size("reasons") == 0)
    return step.overwrite(
        user_rules.history(snapshots), accounts=accounts.whole(step, "bronze.users", "dead_lettered", "dead")
    )


@blog_dataset("silver.users_current", deps=[bronze.users], partitions_def=DAYS, automation=newly_updated())
def users_current(step: Step) -> Commit:
    """Merge each day's delivery into what the days before it have left; users it does not have any more are removed."""
    deliveries = accounts.entries(step, "bronze.users")
    usable = [day for day, entry in sorted(deliveries.items()) if entry.rows_out > int(entry.measures["dead"])]

    def delivery(day: str) -> Delivery:
        # As for silver.users, a day without a usable row is not a delivery: the one before it still holds.
        newest = max((one for one in usable if one <= day), default=None)
        entry = deliveries.get(newest or day)
        dead = int(entry.measures["dead"]) if entry else 0
        rows = step.read("bronze.users").where((F.col("load_date") == (newest or day)) & (F.size("reasons") == 0))
        return Delivery(
            rows=lambda before: user_rules.newest(rows, before, newest or day),
            account=Account(rows_in=entry.rows_out if entry else 0, reasons={"dead_lettered": dead}),
        )

    return step.merge_in_order(delivery)


@blog_dataset("silver.devices", deps=[bronze.devices], automation=newly_updated())
def devices(step: Step) -> Commit:
    """Keep one row per device of the newest delivery; only those that differ are written."""
    delivered = step.read("bronze.devices").where(F.size("reasons") == 0)
    return step.merge_delivery(
        device_rules.unique(delivered),
        accounts=accounts.whole(step, "bronze.devices", "dead_lettered", "dead"),
    )
