"""The users: judging the lines of each day's full delivery, and their history, continued with each delivery.

Decisions: only `id` is required; in JSON it must be a string, as in the visits that refer to it. `login` and `email`
may be missing. What a user is called by is stored apart (Vertical Partitioner): `identity`, a token of the user, the
login and the email, stands for it, and changes with it. A version is a run of consecutive deliveries with the same
identity and registration time; the other fields take the newest value of the run. A version is valid from its first day
on. Versions of the first delivery are valid from the user's registration on, as no earlier delivery could have
contained them; so a delivery changes the history before its day only if it is the first one. A user absent from a
delivery is closed on its day, and begins a new version when delivered again. A rejected row that names its user shows
only that the user is present: an open version continues, but a new or closed user gets no version. Only days with at
least one usable row are deliveries: a day that was not delivered closes nobody.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from assets.transforms import delivered_lines
from assets.transforms.visit_times import iso_time
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule
from blogdata.patterns.security.pseudo_anonymizer import token
from quality.contracts import landed
from quality.contracts.columns import filled

REGISTERED = "registered_datetime"
TIMES = (REGISTERED, "first_connection_datetime", "last_connection_datetime")
FIELDS = tuple(field.name for field in landed.USER)
CALLED = ("login", "email")
IDENTITY = "identity"
KEPT = (*FIELDS[1:], IDENTITY)
"""What a version keeps; of tables that were made without `login` and `email`, the others."""
TRACKED = (IDENTITY, REGISTERED)


def judge(lines: DataFrame) -> DataFrame:
    """Read every line of the deliveries into typed columns, with all reasons to reject it.

    Args:
        lines: raw BINARY, source_file STRING (its suffix decides between JSON and CSV), source_offset BIGINT,
            load_date STRING.

    Returns:
        Rows of bronze.users, one per line; the header of a CSV file is a row with the reason `header`.
        `reasons` has the one reason about the line (see `delivered_lines.read`), or all that apply of
        `missing_field:id`, `wrong_type:<field>` and `invalid_time:<field>`.
    """
    read = delivered_lines.read(lines, FIELDS, strings=("id",))
    read = read.withColumns({f"_{name}": iso_time(F.col(name)) for name in TIMES})
    wrong = {field: F.array_contains(delivered_lines.WRONG_TYPES, field) for field in FIELDS}
    missing = (F.col("id").isNull() | ~_filled_id()) & ~wrong["id"]
    rules = [
        RejectRule(name="missing_field:id", condition=missing),
        *(RejectRule(name=f"wrong_type:{field}", condition=wrong[field]) for field in FIELDS),
        *(
            RejectRule(
                name=f"invalid_time:{name}",
                condition=F.col(name).isNotNull() & F.col(f"_{name}").isNull() & ~wrong[name],
            )
            for name in TIMES
        ),
    ]
    line = F.col(delivered_lines.LINE_REASON)
    return read.select(
        "raw",
        "source_file",
        "source_offset",
        "load_date",
        F.when(_filled_id(), F.col("id")).alias("id"),
        "login",
        "email",
        *(F.col(f"_{name}").alias(name) for name in TIMES),
        F.when(line.isNotNull(), F.array(line)).otherwise(dead_letter.reasons(rules)).alias("reasons"),
    )


def identity_of(user: str, secret: str) -> Column:
    """Return the token of what a user is called by.

    Args:
        user: Name of the column with the user; beside it are `login` and `email`, STRING.
        secret: The deployment's secret for these tokens.
    """
    # As JSON: no two combinations of three texts, some of them null, have one text.
    return token(F.to_json(F.struct(F.col(user).alias("id"), *CALLED)), secret, IDENTITY)


def identities(delivered: DataFrame) -> DataFrame:
    """Collect what users are called by, each login and email of a user once.

    Args:
        delivered: Rows of bronze.users with their identity, including rejected ones.

    Returns:
        Rows of silver.identities; the sum of `snapshots` is the number of usable rows.
    """
    one = F.lit(1).cast("BIGINT").alias("snapshots")
    return _each_once(delivered.where(_is_usable()).select(IDENTITY, *CALLED, one))


def added(known: DataFrame, new: DataFrame) -> DataFrame:
    """Add the identities of some deliveries to those of others; both are encrypted by one key, or neither is."""
    return _each_once(known.select(new.columns).unionByName(new))


def _each_once(rows: DataFrame) -> DataFrame:
    values = (F.any_value(name).alias(name) for name in CALLED)
    return rows.groupBy(IDENTITY).agg(*values, F.sum("snapshots").alias("snapshots"))


def history(delivered: DataFrame, known: DataFrame | None = None, last: str | None = None) -> DataFrame:
    """Derive the versions of every user (SCD2) from deliveries, in one shuffle.

    Args:
        delivered: Rows of bronze.users with their identity, of all days, or of those after `last`, including rejected
            ones.
        known: Rows of silver.users after the earlier deliveries; None: there are none.
        last: Day of the last of the earlier deliveries.

    Returns:
        Rows of silver.users; the sum of `snapshots` is the number of usable rows. If a user has several on one day,
        the first by position is used and the others are only counted.
    """
    day = Window.partitionBy("id", "load_date")
    days = Window.partitionBy("id").orderBy("load_date")
    kept = _kept(known)
    usable, tracked, before = F.col("_usable"), F.col("_tracked"), F.col("_before")
    of_the_first = usable & (F.col("_number") == 0)
    named = delivered.where(_names_its_user()).select(
        "load_date", "source_file", "source_offset", "id", *kept, _is_usable().alias("_usable"), *_no_version()
    )
    one_a_day = (
        # An open version goes on as if all its rows had been one on the last day.
        (named if known is None else named.unionByName(_open(known, kept, last)))
        # One shuffle serves all windows and the grouping; otherwise the windows by day would need their own.
        .repartition("id")
        .withColumns(
            {
                "_place": F.row_number().over(day.orderBy(usable.desc(), "source_file", "source_offset")),
                "_rows": F.coalesce("_snapshots", F.count_if(usable).over(day)),
            }
        )
        .where(F.col("_place") == 1)
    )
    numbered = one_a_day.join(F.broadcast(_deliveries(delivered, last)), "load_date")
    last_tracked = F.last(F.when(usable, tracked), ignorenulls=True).over(
        days.rowsBetween(Window.unboundedPreceding, -1)
    )
    versions = (
        # Gaps and islands: a constant difference means continuous presence.
        numbered.withColumn("_run", F.col("_number") - F.row_number().over(days))
        .withColumn("_tracked", F.struct("_run", *TRACKED))
        .withColumn("_before", last_tracked)
        .withColumn("_starts", usable & ~tracked.eqNullSafe(before))
        .withColumn("_version", F.count_if("_starts").over(days))
        .groupBy("id", "_run", "_version")
        .agg(
            *(F.max_by(name, F.when(usable, F.col("load_date"))).alias(name) for name in kept),
            F.coalesce(
                F.max("_since"),
                F.least(_midnight(F.min("load_date")), F.min(F.when(of_the_first, F.col(REGISTERED)))),
            ).alias("valid_from"),
            _midnight(F.max_by("_next", "load_date")).alias("valid_to"),
            F.sum("_rows").alias("snapshots"),
        )
        # Rejected rows before the first usable one of their run form no version.
        .where(F.col("snapshots") > 0)
    )
    current = F.col("valid_to").isNull().alias("is_current")
    found = versions.select(F.col("id").alias("user_id"), *kept, "valid_from", "valid_to", current, "snapshots")
    return found if known is None else found.unionByName(known.where("NOT is_current").select(*found.columns))


def newest(delivered: DataFrame, before: DataFrame, day: str) -> DataFrame:
    """Compute the users of one delivery, each with the day of its last change.

    Args:
        delivered: Rows of bronze.users with their identity, of one day, including rejected ones.
        before: Rows of silver.users_current after the earlier deliveries.
        day: The delivery's day.

    Returns:
        Rows of silver.users_current; the sum of `occurrences` is the number of usable rows. If a user has several,
        the first by position is used and the others are only counted. A user with only rejected rows stays unchanged.
    """
    place = F.when(_is_usable(), F.struct("source_file", "source_offset"))
    first = {name: F.min_by(name, place).alias(name) for name in _kept(before)}
    one_each = (
        delivered.where(_names_its_user())
        .groupBy(F.col("id").alias("user_id"))
        .agg(*first.values(), F.count_if(_is_usable()).alias("occurrences"))
    )
    known = before.select("user_id", "changed_on", F.struct(*first).alias("_before"))
    row = F.when(F.col("occurrences") > 0, F.struct(*first)).otherwise(F.col("_before"))
    current = one_each.join(known, "user_id", "left").withColumn("_row", row).where(F.col("_row").isNotNull())
    changed = F.when(F.col("_row").eqNullSafe(F.col("_before")), F.col("changed_on")).otherwise(F.lit(day))
    return current.select("user_id", "_row.*", changed.alias("changed_on"), "occurrences")


def _kept(before: DataFrame | None) -> list[str]:
    return [name for name in KEPT if before is None or name in before.columns]


def _filled_id() -> Column:
    return F.expr(filled("id"))


def _is_usable() -> Column:
    return F.size("reasons") == 0


def _names_its_user() -> Column:
    """Build the condition that a row, rejected or not, names its user; non-rows have no id, a number is no id."""
    return F.col("id").isNotNull() & ~F.array_contains("reasons", "wrong_type:id")


def _no_version() -> list[Column]:
    return [F.lit(None).cast("TIMESTAMP").alias("_since"), F.lit(None).cast("BIGINT").alias("_snapshots")]


def _open(known: DataFrame, kept: list[str], last: str | None) -> DataFrame:
    """Return the open versions as rows of their last delivery, with their begin and the rows they stand for."""
    return known.where("is_current").select(
        F.lit(last).alias("load_date"),
        F.lit("").alias("source_file"),
        F.lit(0).cast("BIGINT").alias("source_offset"),
        F.col("user_id").alias("id"),
        *kept,
        F.lit(True).alias("_usable"),
        F.col("valid_from").alias("_since"),
        F.col("snapshots").alias("_snapshots"),
    )


def _deliveries(delivered: DataFrame, last: str | None) -> DataFrame:
    """Number the days with a usable row in order, each with the next such day; before them comes `last`."""
    found = F.collect_set("load_date")
    all_days = found if last is None else F.array_append(found, F.lit(last))
    days = delivered.where(_is_usable()).agg(F.array_sort(all_days).alias("_days"))
    numbered = days.select("_days", F.posexplode("_days").alias("_number", "load_date"))
    return numbered.select("load_date", "_number", F.get("_days", F.col("_number") + 1).alias("_next"))


def _midnight(day: Column) -> Column:
    return F.to_timestamp(F.concat(day, F.lit("T00:00:00Z")))
