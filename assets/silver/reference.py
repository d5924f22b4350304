"""silver.users and silver.devices: reference data that visits join."""

from pyspark.sql import functions as F

from assets import bronze
from assets.policy import blog_dataset, delivered, newly_updated
from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Commit


@blog_dataset("silver.users", deps=[bronze.users], automation=delivered())
def users(step: Step) -> Commit:
    """Derive the history of the users from all deliveries: a function of bronze, whatever the order of loads."""
    snapshots = step.read("bronze.users").where(F.size("reasons") == 0)
    return step.overwrite(
        user_rules.history(snapshots), accounts=accounts.whole(step, "bronze.users", "dead_lettered", "dead")
    )


@blog_dataset("silver.devices", deps=[bronze.devices], automation=newly_updated())
def devices(step: Step) -> Commit:
    """Keep one row per device of the newest delivery; only those that differ are written."""
    delivered = step.read("bronze.devices").where(F.size("reasons") == 0)
    return step.merge_delivery(
        device_rules.unique(delivered),
        accounts=accounts.whole(step, "bronze.devices", "dead_lettered", "dead"),
    )
