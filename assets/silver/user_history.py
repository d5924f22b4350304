"""The history of the users, continued with each day's full delivery and with changes between deliveries.

What a user is called by is stored apart (Vertical Partitioner): `identity`, a token of the user, the
login and the email, stands for it, and changes with it. A version is a run of consecutive deliveries with the same
identity and registration time; the other fields take the newest value of the run. A version is valid from its first day
on. Versions of the first delivery are valid from the user's registration on, as no earlier delivery could have
contained them; so a delivery changes the history before its day only if it is the first one. A user absent from a
delivery is closed on its day, and begins a new version when delivered again. A rejected row that names its user shows
only that the user is present: an open version continues, but a new or closed user gets no version. Only days with at
least one usable row are deliveries: a day that was not delivered closes nobody.

A change of one user holds from its `updated_at` on, whether it begins a version or deletes the user, and says nothing
about others; a full delivery after it closes the user if it does not name him. If a user has several rows of one
instant, the change that landed last is used. A rejected change is none.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from assets.bronze import user_changes
from blogdata.patterns.idempotency.merger import DELETED
from blogdata.patterns.security.pseudo_anonymizer import token
from quality.contracts import landed

REGISTERED = "registered_datetime"
FIELDS = tuple(field.name for field in landed.USER)
CALLED = ("login", "email")
IDENTITY = "identity"
KEPT = (*FIELDS[1:], IDENTITY)
"""What a version keeps; of tables that were made without `login` and `email`, the others."""
TRACKED = (IDENTITY, REGISTERED)


def identity_of(user: str, secret: str) -> Column:
    """Return the token of what the user in a column is called by; beside it are `login` and `email`, STRING."""
    # As JSON: no two combinations of three texts, some of them null, have one text.
    return token(F.to_json(F.struct(F.col(user).alias("id"), *CALLED)), secret, IDENTITY)


def identities(delivered: DataFrame) -> DataFrame:
    """Collect what users are called by, each login and email of a user once: rows of silver.identities.

    The sum of `snapshots` is the number of usable rows, without changes that delete.
    """
    names = _is_usable() & ~F.coalesce(DELETED, F.lit(False))
    return _distinct(delivered.where(names).select(IDENTITY, *CALLED, F.lit(1).cast("BIGINT").alias("snapshots")))


def added(known: DataFrame, new: DataFrame) -> DataFrame:
    """Add the identities of some deliveries to those of others; both are encrypted by one key, or neither is."""
    return _distinct(known.select(new.columns).unionByName(new))


def _distinct(rows: DataFrame) -> DataFrame:
    values = (F.any_value(name).alias(name) for name in CALLED)
    return rows.groupBy(IDENTITY).agg(*values, F.sum("snapshots").alias("snapshots"))


def history(delivered: DataFrame, known: DataFrame | None = None, last: str | None = None) -> DataFrame:
    """Derive the versions of every user (SCD2) from deliveries and changes, in one shuffle: rows of silver.users.

    Without `known`, `delivered` has the rows of bronze.users of all days with their identity, rejected ones, too. With
    `known`, the rows of silver.users after day `last` and the first full delivery, it has those of later days. The sum
    of `snapshots` is the number of usable rows, without those of instants at which a user is deleted
    (:func:`assets.bronze.user_changes.deleted`). Of several rows on one day's delivery, the first by position is
    used and the others are only counted.
    """
    instant = Window.partitionBy("id", "_instant")
    instants = Window.partitionBy("id").orderBy("_instant")
    kept = _kept(known)
    usable, deleted, tracked, before = (F.col(f"_{name}") for name in ("usable", "deleted", "tracked", "before"))
    named = delivered.where(_names_its_user() & (_is_usable() | ~user_changes.is_change())).select(
        "load_date",
        "source_file",
        "source_offset",
        "id",
        *kept,
        _is_usable().alias("_usable"),
        user_changes.instant().alias("_instant"),
        user_changes.order().alias("_order"),
        F.coalesce(DELETED, F.lit(False)).alias("_deleted"),
        F.lit(None).cast("TIMESTAMP").alias("_since"),
        F.lit(None).cast("BIGINT").alias("_snapshots"),
    )
    first_of_instant = (
        # An open version goes on as if all its rows had been one on the last day.
        (named if known is None else named.unionByName(_open(known, kept, last)))
        # One shuffle serves all windows and the grouping; otherwise the windows by instant would need their own.
        .repartition("id")
        .withColumns(
            {
                "_place": F.row_number().over(
                    instant.orderBy(usable.desc(), F.col("_order").desc_nulls_last(), "source_file", "source_offset")
                ),
                "_rows": F.coalesce("_snapshots", F.count_if(usable).over(instant)),
            }
        )
        .where(F.col("_place") == 1)
    )
    dated = first_of_instant.join(F.broadcast(_days(delivered, last)), "load_date")
    is_delivered = F.col("_order").isNull()
    is_first = F.lag("_instant").over(instants).isNull()
    last_tracked = F.last(F.when(usable & ~deleted, tracked), ignorenulls=True).over(
        instants.rowsBetween(Window.unboundedPreceding, -1)
    )
    versions = (
        dated.where(~is_delivered | F.col("_is_delivery"))
        .withColumn("_of_the_first", usable & is_delivered & F.col("_is_first") & is_first)
        # A full delivery ends what it does not name.
        .withColumn("_end", F.least(F.lead("_instant").over(instants), user_changes.midnight(F.col("_next"))))
        .withColumn("_seamless", F.lag(F.when(~deleted, F.col("_end"))).over(instants) == F.col("_instant"))
        .withColumn("_run", F.count_if(deleted | ~F.coalesce("_seamless", F.lit(False))).over(instants))
        .withColumn("_tracked", F.struct("_run", *TRACKED))
        .withColumn("_before", last_tracked)
        .withColumn("_starts", usable & ~deleted & ~tracked.eqNullSafe(before))
        .withColumn("_version", F.count_if("_starts").over(instants))
        .groupBy("id", "_run", "_version")
        .agg(
            *(F.max_by(name, F.when(usable, F.col("_instant"))).alias(name) for name in kept),
            F.coalesce(
                F.max("_since"), F.least(F.min("_instant"), F.min(F.when(F.col("_of_the_first"), F.col(REGISTERED))))
            ).alias("valid_from"),
            F.max_by("_end", "_instant").alias("valid_to"),
            F.sum(F.when(~deleted, F.col("_rows"))).alias("snapshots"),
        )
        # Neither deletions nor rejected rows before the first usable one of their run form a version.
        .where(F.col("snapshots") > 0)
    )
    current = F.col("valid_to").isNull().alias("is_current")
    rows = versions.select(F.col("id").alias("user_id"), *kept, "valid_from", "valid_to", current, "snapshots")
    return rows if known is None else rows.unionByName(known.where("NOT is_current").select(*rows.columns))


def newest(delivered: DataFrame, before: DataFrame, day: str) -> DataFrame:
    """Compute the users of one full delivery, rejected rows included: rows of silver.users_current.

    Of several usable rows of a user the first by position is used, and `occurrences` counts all. A user with only
    rejected rows stays unchanged.
    """
    place = F.when(_is_usable(), F.struct("source_file", "source_offset"))
    first = {name: F.min_by(name, place).alias(name) for name in _kept(before)}
    by_user = (
        delivered.where(_names_its_user())
        .groupBy(F.col("id").alias("user_id"))
        .agg(*first.values(), F.count_if(_is_usable()).alias("occurrences"))
    )
    known = before.select("user_id", "changed_on", F.struct(*first).alias("_before"))
    row = F.when(F.col("occurrences") > 0, F.struct(*first)).otherwise(F.col("_before"))
    current = by_user.join(known, "user_id", "left").withColumn("_row", row).where(F.col("_row").isNotNull())
    changed = F.when(F.col("_row").eqNullSafe(F.col("_before")), F.col("changed_on")).otherwise(F.lit(day))
    return current.select("user_id", "_row.*", changed.alias("changed_on"), "occurrences")


def changed(changes: DataFrame, before: DataFrame, day: str) -> DataFrame:
    """Apply the newest usable change of each user: rows of silver.users_current with `is_deleted`.

    `occurrences` is that of the row before plus the number of the user's usable changes.
    """
    values = _kept(before)
    last = F.max_by(F.struct(*values, DELETED), F.struct(user_changes.DELTA, user_changes.order()))
    by_user = (
        changes.where(_is_usable())
        .groupBy(F.col("id").alias("user_id"))
        .agg(last.alias("_last"), F.count(F.lit(1)).alias("_rows"))
        .select("user_id", "_last.*", F.struct(*(f"_last.{name}" for name in values)).alias("_now"), "_rows")
    )
    known = before.select(
        "user_id", "changed_on", F.col("occurrences").alias("_occurrences"), F.struct(*values).alias("_before")
    )
    is_same = F.col("_now").eqNullSafe(F.col("_before"))
    return by_user.join(known, "user_id", "left").select(
        "user_id",
        *values,
        F.when(is_same, F.col("changed_on")).otherwise(F.lit(day)).alias("changed_on"),
        (F.coalesce("_occurrences", F.lit(0)) + F.col("_rows")).alias("occurrences"),
        DELETED,
    )


def applied(changes: DataFrame, rows: DataFrame) -> DataFrame:
    left = changes.where(~F.col(DELETED)).select(*rows.columns)
    return rows.join(changes, "user_id", "left_anti").unionByName(left)


def _kept(before: DataFrame | None) -> list[str]:
    return [name for name in KEPT if before is None or name in before.columns]


def _is_usable() -> Column:
    return F.size("reasons") == 0


def _names_its_user() -> Column:
    """Build the condition that a row, rejected or not, names its user; non-rows have no id, a number is no id."""
    return F.col("id").isNotNull() & ~F.array_contains("reasons", "wrong_type:id")


def _open(known: DataFrame, kept: list[str], last: str | None) -> DataFrame:
    """Return the open versions as rows of the last day, with their begin and the rows they stand for."""
    return known.where("is_current").select(
        F.lit(last).alias("load_date"),
        F.lit("").alias("source_file"),
        F.lit(0).cast("BIGINT").alias("source_offset"),
        F.col("user_id").alias("id"),
        *kept,
        F.lit(True).alias("_usable"),
        user_changes.midnight(F.lit(last)).alias("_instant"),
        F.lit(None).alias("_order"),
        F.lit(False).alias("_deleted"),
        F.col("valid_from").alias("_since"),
        F.col("snapshots").alias("_snapshots"),
    )


def _days(delivered: DataFrame, last: str | None) -> DataFrame:
    """List the days with usable rows: whether they have a full delivery, the first one, and the next such day."""
    day = F.col("load_date")
    days = delivered.where(_is_usable()).agg(
        F.collect_set(day).alias("_all"), F.collect_set(F.when(~user_changes.is_change(), day)).alias("_deliveries")
    )
    every = F.col("_all") if last is None else F.array_append("_all", F.lit(last))
    first = F.lit(False) if last is not None else day.eqNullSafe(F.array_min("_deliveries"))
    return days.select("_deliveries", F.explode(every).alias("load_date")).select(
        "load_date",
        (F.array_contains("_deliveries", day) | day.eqNullSafe(F.lit(last))).alias("_is_delivery"),
        first.alias("_is_first"),
        F.array_min(F.filter("_deliveries", lambda other: other > day)).alias("_next"),
    )
