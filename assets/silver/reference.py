"""silver.users and silver.devices, reference data with history, silver.users_current, its current state, and
silver.identities, what users are called by.

The history of device names (SCD2), continued with each delivery.

Decisions: if a device has several rows, the first by position is used and the others are only counted. A version is
valid from the midnight of the delivery that introduced it. Versions of the first delivery have always been valid, as no
earlier delivery could have contained them. A delivery closes the versions that it names differently or not at all. A
device that is delivered again begins a new version.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.bronze import user_changes
from assets.silver import user_history as user_rules
from blogdata.contract.publication import WHOLE_TABLE, Account, Commit, Entry
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing import dead_letter, full_loader
from blogdata.operate import secrets
from blogdata.patterns.idempotency import proxy
from blogdata.patterns.security import encryptor
from blogdata.planning.reach import (
    Continued,
    changed_rows,
    continued,
    delivered_on,
    delivered_rows,
    first_delivery,
    usable_rows,
)
from blogdata.runs import accounts, deployment_keys
from blogdata.runs.computation import computes
from blogdata.runs.step import Changes, FullDelivery, Step, Upstream
from quality.contracts import CONTRACTS
from quality.keys import VISITOR_KEY

DEVICE = ("device_type", "device_version")


def versions(delivered: DataFrame, before: DataFrame, day: str) -> DataFrame:
    """Update the versions of the devices, all rows of silver.devices, with a full delivery.

    Several deliveries of one day have the same result as the last of them alone.
    """
    midnight = F.to_timestamp(F.lit(f"{day}T00:00:00Z"))
    earlier = before.where(F.col("changed_on") < day).withColumn(
        "valid_to", F.when(F.col("valid_to") < midnight, F.col("valid_to"))
    )
    is_first = earlier.agg((F.count(F.lit(1)) == 0).alias("_is_first"))
    was, now = earlier.withColumn("_was", F.lit(True)).alias("was"), _one_each(delivered).alias("now")
    is_open = F.col("was.valid_to").isNull()
    same = [F.col(f"was.{name}") == F.col(f"now.{name}") for name in DEVICE]
    met = was.join(now, reduce(Column.__and__, same, is_open), "full").crossJoin(F.broadcast(is_first))
    is_there, is_named = F.col("_was").isNotNull(), F.col("now.occurrences").isNotNull()
    goes_on = is_there & is_named & F.col("was.full_name").eqNullSafe(F.col("now.full_name"))
    known = F.struct(
        *(f"was.{name}" for name in (*DEVICE, "full_name")),
        F.when(goes_on, F.col("now.occurrences")).otherwise(0).alias("occurrences"),
        "was.changed_on",
        "was.valid_from",
        F.when(is_open & ~goes_on, midnight).otherwise(F.col("was.valid_to")).alias("valid_to"),
    )
    begun = F.struct(
        *(f"now.{name}" for name in (*DEVICE, "full_name", "occurrences")),
        F.lit(day).alias("changed_on"),
        F.when(~F.col("_is_first"), midnight).alias("valid_from"),
        F.lit(None).cast("timestamp").alias("valid_to"),
    )
    found = F.array(F.when(is_there, known), F.when(is_named & ~goes_on, begun))
    return met.select(F.inline(F.array_compact(found)))


def _one_each(delivered: DataFrame) -> DataFrame:
    position = F.struct("source_file", "source_offset")
    usable = delivered.where(F.size("reasons") == 0)
    return usable.groupBy(F.col("type").alias("device_type"), F.col("version").alias("device_version")).agg(
        F.min_by("full_name", position).alias("full_name"), F.count(F.lit(1)).alias("occurrences")
    )


def _require_usable(step: Step, above: str, delivery: Entry, before: int) -> None:
    """Refuse a full load if most of its rows are dead letters: users or devices absent from it would be removed."""
    usable, rows = _counts(delivery)
    dead = rows - usable
    if dead <= usable or usable >= before * full_loader.MIN_SHARE or full_loader.ACCEPT_SIZE in step.accepted:
        return
    dataset, partitioning = step.contract.dataset, CONTRACTS[above].partitioning
    own = f"{partitioning.column} = '{delivery.partition}' AND " if partitioning else ""
    query = dead_letter.query(above, f"{own}size(reasons) > 0")
    raise full_loader.FullLoadRefused(
        what=f"{dead} of {rows} rows are dead letters; {usable} can be used, there were {before}",
        where=f"{above} {delivery.partition}".strip(),
        next_step=Remedy(
            "nobody was removed; why they are dead: ",
            query,
            "; have it delivered again, or if it is right: ",
            Run(datasets=(dataset,), accept=full_loader.ACCEPT_SIZE),
        ),
    )


def _require_usable_users(step: Step) -> None:
    published = step.events.publications(step.contract.dataset).values()
    read = max((entry.inputs.get("bronze.users", -1) for entry in published), default=-1)
    accepted = {entry.partition: entry for entry in step.events.history("bronze.users") if entry.version <= read}
    before = 0
    for day, delivery in sorted(accounts.entries(step, "bronze.users").items()):
        usable = delivered_rows(delivery)
        # A day without a usable row is not a delivery, nor are changes: they remove nobody who is absent. They come
        # hour by hour, and a delivery of their day that was accepted is not asked about again.
        is_new = day not in accepted or _counts(delivery) != _counts(accepted[day])
        if usable and delivery.version > read and is_new:
            _require_usable(step, "bronze.users", delivery, before)
        before = usable or before


def _counts(delivery: Entry) -> tuple[int, int]:
    """Return the rows of a full delivery that are usable, and all of them."""
    return delivered_rows(delivery), delivery.rows_out - changed_rows(delivery)


@computes("silver.identities")
def identities(step: Step) -> Mapping[str, Commit]:
    """Add what users are called by on the newest days, encrypted; by another key, all of it is derived anew."""
    contract = step.contract
    assert contract.encrypted is not None
    name, settings = contract.encrypted.key, step.deployment.settings()
    key = deployment_keys.current(settings, name)
    landed, delivered = accounts.entries(step, "bronze.users").values(), _delivered(step)
    # What a deletion says of its user is used by nothing, so it is not encrypted.
    account = _account(landed, deleted=sum(int(day.measures.get("deletions", 0)) for day in landed))
    source = Upstream(accounts={WHOLE_TABLE: account})
    step.judged_by[name] = key.mark
    known = _known(step)
    left = delivered if known is None else _left(delivered, known)
    new = encryptor.encrypted(user_rules.identities(left), contract, secrets.own(settings, name), key.version)
    if known is not None:
        new = user_rules.added(step.lake.read(step.spark, contract.dataset, known.version), new)
    return step.publish(new, source)


@computes("silver.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Continue the history of the users with the newest deliveries and changes; the order of loads does not matter.

    It is continued from the newest version of the table in which all days before them are as they are now: a late or
    changed one is merged with all later ones. It is derived from all days if there is no such version, if the first
    full delivery is a new one, or if nothing has changed and a person asks for it again. The account is that of all
    days in either case.
    """
    _require_usable_users(step)
    landed, delivered = accounts.entries(step, "bronze.users"), _delivered(step)
    days = [key for key, day in landed.items() if day.measures.get("deletions")]
    deleted = user_changes.deleted(delivered.where(F.col("load_date").isin(days))) if days else 0
    source = Upstream(accounts={WHOLE_TABLE: _account(landed.values(), deleted=deleted)})
    known = _known(step)
    if known is not None:
        before = step.lake.read(step.spark, step.contract.dataset, known.version)
        # A version from before a column was declared does not have it.
        if {column.name for column in step.contract.columns} <= {*before.columns}:
            return step.publish(user_rules.history(_left(delivered, known), before, known.last), source)
    return step.publish(user_rules.history(delivered), source)


def _delivered(step: Step, days: Collection[str] | None = None) -> DataFrame:
    """Return the deliveries and changes of users, of all days or of some, with their identities."""
    identity = user_rules.identity_of("id", step.token_key(VISITOR_KEY))
    return step.read("bronze.users", days).withColumn(user_rules.IDENTITY, identity)


def _account(days: Collection[Entry], *, deleted: int) -> Account:
    """Account for the rows of some days of users, without dead letters and those that deletions leave out."""
    rows = sum(day.rows_out for day in days)
    dead = sum(int(day.measures["dead"]) for day in days)
    return Account(rows_in=rows, reasons={"dead_lettered": dead, **({"deleted": deleted} if deleted else {})})


def _left(delivered: DataFrame, known: Continued) -> DataFrame:
    return delivered.where(F.col("load_date").isin(*known.left) if known.left else F.lit(False))


def _known(step: Step) -> Continued | None:
    """Find the version to continue from; None: the dataset is derived from all deliveries."""
    dataset, version = step.contract.dataset, step.pin("bronze.users")
    published = step.events.publications(dataset).get(WHOLE_TABLE)
    if published is None or published.inputs.get("bronze.users") == version:
        return None
    loads = step.events.history("bronze.users")
    own = [entry for entry in step.events.history(dataset) if entry.judged_by == step.judged_by]
    there = accounts.entries(step, "bronze.users")
    found = continued(own, loads, {day: one.version for day, one in there.items() if usable_rows(one)})
    # Users of the first full delivery were there before it, unless a change says otherwise.
    first = first_delivery(there.items())
    return next((one for one in found if first not in one.left and step.lake.is_whole(dataset, one.version)), None)


@computes("silver.users_current")
def users_current(step: Step) -> Mapping[str, Commit]:
    """Merge what landed on each day into the state after the earlier ones: a full delivery first, then the changes.

    Users that a delivery does not name are removed, of changed ones those that a change deletes (Merger).
    """
    _require_usable_users(step)
    landed = accounts.entries(step, "bronze.users")
    usable = [day for day, entry in sorted(landed.items()) if usable_rows(entry)]

    def delivery(day: str) -> FullDelivery:
        # As for silver.users, a day without a usable row is not a delivery: the one before it still holds.
        newest = max((one for one in usable if one <= day and delivered_rows(landed[one])), default=None)
        days = [one for one in usable if (newest or "") <= one <= day] or [day]
        rows = _delivered(step, days)
        entries = [landed[one] for one in days if one in landed]
        deleted = user_changes.gone(rows) if any(one.measures.get("deletions") for one in entries) else 0
        account = _account(entries, deleted=deleted)
        is_change, is_today = user_changes.is_change(), F.col("load_date") == day

        def changed(before: DataFrame) -> DataFrame:
            return user_rules.changed(rows.where(is_change & is_today), before, day)

        def after(before: DataFrame) -> DataFrame:
            known = user_rules.newest(rows.where(~is_change & is_today), before, day)
            return user_rules.applied(changed(known), known) if changed_rows(landed[day]) else known

        return FullDelivery(rows=after, account=account) if newest == day else Changes(rows=changed, account=account)

    return step.publish(delivery)


@computes("silver.devices")
def devices(step: Step) -> Mapping[str, Commit]:
    """Update the history of device names to the newest delivery; only versions that differ are written.

    A delivery that landed after a newer one, or that was refused and not accepted, is not part of the history.
    """
    known = step.events.publications("silver.devices").get(WHOLE_TABLE)
    delivery = accounts.entries(step, "bronze.devices")[WHOLE_TABLE]
    current = known.measures["current"] if known else 0
    _require_usable(step, "bronze.devices", delivery, int(current))
    account = accounts.whole(step, "bronze.devices", "dead_lettered", "dead")[WHOLE_TABLE]
    delivered, taken_in = step.read("bronze.devices"), _taken_in(step)

    def rows(before: DataFrame) -> DataFrame:
        if taken_in and before.isEmpty():
            # The rows of the table are lost: rebuild them from the kept copies.
            before = _taken_in_again(step, taken_in, before)
        return versions(delivered, before, delivered_on(delivery))

    return step.publish(FullDelivery(rows=rows, account=account))


def _taken_in(step: Step) -> Sequence[Entry]:
    """List the deliveries of devices that silver.devices has read, in the order of reading."""
    copies = {entry.version: entry for entry in step.events.history("bronze.devices")}
    versions = sorted(copies)
    read = [entry.inputs["bronze.devices"] for entry in step.events.history("silver.devices")]
    known = dict.fromkeys(versions[at - 1] for version in read if (at := bisect_right(versions, version)))
    return [copies[version] for version in known]


def _taken_in_again(step: Step, loads: Sequence[Entry], nothing: DataFrame) -> DataFrame:
    """Recompute the versions of the devices from the copies of their deliveries that are still kept."""
    kept = {copy.since_version: copy for copy in proxy.history(step.lake, "bronze.devices") if copy.removed_at is None}
    rows = nothing
    for entry in loads:
        if entry.version in kept:
            delivered = step.lake.read_members(step.spark, "bronze.devices", [kept[entry.version]])
            rows = versions(delivered, rows, delivered_on(entry))
            # Materialize: a query plan that grows with each delivery would be refused when there are many.
            rows = step.spark.createDataFrame(rows.toArrow())
    return rows
