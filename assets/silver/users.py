"""silver.users with their history, silver.users_current, and silver.identities: what users are called by.

The rules of the history are in :mod:`.user_history`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.bronze import user_changes
from assets.silver import user_history
from blogdata.contract.publication import WHOLE_TABLE, Account, Commit, Entry
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing import dead_letter, full_loader
from blogdata.operate import secrets
from blogdata.patterns.security import encryptor
from blogdata.planning.reach import Continued, changed_rows, continued, delivered_rows, first_delivery, usable_rows
from blogdata.runs import accounts, deployment_keys
from blogdata.runs.computation import computes
from blogdata.runs.step import Changes, FullDelivery, Step, Upstream
from quality.contracts import CONTRACTS
from quality.keys import VISITOR_KEY


def require_usable(step: Step, above: str, delivery: Entry, before: int) -> None:
    """Refuse a full load if most of its rows are dead letters: users or devices absent from it would be removed."""
    usable, rows = _counts(delivery)
    dead = rows - usable
    if dead <= usable or usable >= before * full_loader.MIN_SHARE or full_loader.ACCEPT_SIZE in step.accepted:
        return
    dataset, partitioning = step.contract.dataset, CONTRACTS[above].partitioning
    of_day = f"{partitioning.column} = '{delivery.partition}' AND " if partitioning else ""
    query = dead_letter.query(above, f"{of_day}size(reasons) > 0")
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
            require_usable(step, "bronze.users", delivery, before)
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
    new = encryptor.encrypted(user_history.identities(left), contract, secrets.own(settings, name), key.version)
    if known is not None:
        new = user_history.added(step.lake.read(step.spark, contract.dataset, known.version), new)
    return step.publish(new, source)


@computes("silver.users")
def users(step: Step) -> Mapping[str, Commit]:
    """Continue the history of the users with the newest deliveries and changes; the order of loads does not matter.

    It is continued from the newest version of the table in which all days before them are as they are now, and derived
    from all days if there is none, if the first full delivery is a new one, or if a person asks for it again although
    nothing has changed. The account is that of all days in either case.
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
            return step.publish(user_history.history(_left(delivered, known), before, known.last), source)
    return step.publish(user_history.history(delivered), source)


def _delivered(step: Step, days: Collection[str] | None = None) -> DataFrame:
    """Return the deliveries and changes of users, of all days or of some, with their identities."""
    identity = user_history.identity_of("id", step.token_key(VISITOR_KEY))
    return step.read("bronze.users", days).withColumn(user_history.IDENTITY, identity)


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
    versions = [entry for entry in step.events.history(dataset) if entry.judged_by == step.judged_by]
    days = accounts.entries(step, "bronze.users")
    usable = {day: entry.version for day, entry in days.items() if usable_rows(entry)}
    # Users of the first full delivery existed before it, unless a change says otherwise.
    first = first_delivery(days.items())
    candidates = (known for known in continued(versions, loads, usable) if first not in known.left)
    return next((known for known in candidates if step.lake.is_whole(dataset, known.version)), None)


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
        newest = max((load for load in usable if load <= day and delivered_rows(landed[load])), default=None)
        days = [load for load in usable if (newest or "") <= load <= day] or [day]
        rows = _delivered(step, days)
        entries = [landed[load] for load in days if load in landed]
        deleted = user_changes.gone(rows) if any(entry.measures.get("deletions") for entry in entries) else 0
        account = _account(entries, deleted=deleted)
        is_change, is_today = user_changes.is_change(), F.col("load_date") == day

        def changed(before: DataFrame) -> DataFrame:
            return user_history.changed(rows.where(is_change & is_today), before, day)

        def after(before: DataFrame) -> DataFrame:
            known = user_history.newest(rows.where(~is_change & is_today), before, day)
            return user_history.applied(changed(known), known) if changed_rows(landed[day]) else known

        return FullDelivery(rows=after, account=account) if newest == day else Changes(rows=changed, account=account)

    return step.publish(delivery)
