"""silver.users and silver.devices, reference data that visits join, and silver.users_current, as it is today."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.transforms import devices as device_rules
from assets.transforms import users as user_rules
from orchestration import accounts
from orchestration.computation import computes
from orchestration.step import Delivery, Source, Step
from patterns.core.commit import WHOLE_TABLE, Account, Commit, Entry
from patterns.error_management import dead_letter
from patterns.ingestion import full_loader
from planning.reach import usable_rows
from quality.contracts import CONTRACTS


def _require_usable(step: Step, above: str, delivery: Entry, before: int) -> None:
    """Refuse a full load when dead letters have taken most of it: whoever is absent from it is removed."""
    usable = usable_rows(delivery)
    dead = delivery.rows_out - usable
    if dead <= usable or usable >= before * full_loader.MIN_SHARE or full_loader.SIZE in step.accepted:
        return
    dataset, partitioning = step.contract.dataset, CONTRACTS[above].partitioning
    own = f"{partitioning.column} = '{delivery.partition}' AND " if partitioning else ""
    query = dead_letter.query(above, f"{own}size(reasons) > 0")
    raise full_loader.FullLoadRefused(
        what=f"{dead} of {delivery.rows_out} rows are dead letters; {usable} can be used, there were {before}",
        where=f"{above} {delivery.partition}".strip(),
        next_step=f"nobody was removed; why they are dead: {query}; have it delivered again, or if it is right: "
        f"blogdata run --select {dataset} --accept {full_loader.SIZE}",
    )


def _require_usable_users(step: Step) -> None:
    published = step.events.publications(step.contract.dataset).values()
    read = max((entry.inputs.get("bronze.users", -1) for entry in published), default=-1)
    before = 0
    for _, delivery in sorted(accounts.entries(step, "bronze.users").items()):
        usable = usable_rows(delivery)
        # A day without a usable row is not a delivery: it removes nobody.
        if usable and delivery.version > read:
            _require_usable(step, "bronze.users", delivery, before)
        before = usable or before


@computes("silver.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Derive the history of the users from all deliveries: a function of bronze, whatever the order of loads."""
    _require_usable_users(step)
    return step.publish(
        user_rules.history(step.read("bronze.users")),
        Source(accounts=accounts.whole(step, "bronze.users", "dead_lettered", "dead")),
    )


@computes("silver.users_current")
def users_current(step: Step) -> Mapping[str, Commit]:
    """Merge each day's delivery into what the days before it have left; users it does not name any more are removed."""
    _require_usable_users(step)
    deliveries = accounts.entries(step, "bronze.users")
    usable = [day for day, entry in sorted(deliveries.items()) if usable_rows(entry)]

    def delivery(day: str) -> Delivery:
        # As for silver.users, a day without a usable row is not a delivery: the one before it still holds.
        newest = max((one for one in usable if one <= day), default=None)
        entry = deliveries.get(newest or day)
        dead = int(entry.measures["dead"]) if entry else 0
        rows = step.read("bronze.users").where(F.col("load_date") == (newest or day))
        return Delivery(
            rows=lambda before: user_rules.newest(rows, before, newest or day),
            account=Account(rows_in=entry.rows_out if entry else 0, reasons={"dead_lettered": dead}),
        )

    return step.publish(delivery)


@computes("silver.devices")
def devices(step: Step) -> Mapping[str, Commit]:
    """Keep one row per device of the newest delivery; only those that differ are written."""
    known = step.events.publications("silver.devices").get(WHOLE_TABLE)
    delivery = accounts.entries(step, "bronze.devices")[WHOLE_TABLE]
    _require_usable(step, "bronze.devices", delivery, known.rows_out if known else 0)
    delivered = step.read("bronze.devices").where(F.size("reasons") == 0)
    return step.publish(
        device_rules.unique(delivered),
        Source(accounts=accounts.whole(step, "bronze.devices", "dead_lettered", "dead")),
    )
