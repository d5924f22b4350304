"""Users: as delivered each day, what they are called by, their history, and as of the newest delivery."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Audit, Column, Encrypted, RowRule
from blogdata.contract.watch import Flow, Lag, Layer, Skew, Sla, Watch
from blogdata.contract.writes import InOrder
from blogdata.patterns.storage.vertical_partitioner import split
from blogdata.planning.reach import SAME, WHOLE, InTurn, Landed
from quality.contracts import columns as c
from quality.contracts import landed
from quality.contracts.landed import BYTES, ERASED, LANDED_LINES, LOAD

USERS_DELIVERED = Contract(
    dataset="bronze.users",
    description="The users as delivered each day, one full snapshot a day, and changed users of a table",
    owner="team:platform",
    reads=(
        Read("landing.users", Landed(table="users", grain=Grain.DAY), fields=(*landed.USER, *landed.OF_CHANGED_USERS)),
    ),
    columns=(
        replace(c.RAW, subject=c.USER_DIRECT),
        *c.SOURCE,
        c.LOAD_DATE,
        c.of_user("id", "The user"),
        *(replace(column, masked=True) if column.name == "email" else column for column in c.USER),
        c.REASONS,
        c.user_time("updated_at", "When the user was changed; null for rows of full deliveries, and for dead letters"),
        Column("is_deleted", "The change deletes the user; null for rows of full deliveries", type="BOOLEAN"),
    ),
    partitioning=LOAD,
    rows_in=LANDED_LINES,
    left_out=ERASED,
    rules=(
        RowRule("judged", "size(reasons) > 0 OR id IS NOT NULL", "A row is rejected with a reason or names a user"),
        RowRule(
            "changed_at_a_time",
            "size(reasons) > 0 OR (updated_at IS NULL) = (is_deleted IS NULL)",
            "A change has a time, unless it is rejected",
        ),
    ),
    measures={
        "bytes": BYTES,
        "dead": "count_if(size(reasons) > 0)",
        "changes": "count_if(is_deleted IS NOT NULL)",
        "dead_changes": "count_if(is_deleted IS NOT NULL AND size(reasons) > 0)",
        "deletions": "count_if(is_deleted AND size(reasons) = 0)",
    },
    breakdowns={"reasons": ("explode(reasons)",)},
    statistics=("source_offset",),
    patterns=("Readiness Marker", "Dead-Letter", "In-Place Overwriter"),
    freshness_hours=24,
    watch=Watch(flow=Flow(layer=Layer.STORAGE, every=timedelta(days=2)), skew=Skew(), lag=Lag(), sla=Sla()),
)

IDENTITIES = Contract(
    dataset="silver.identities",
    description="What users are called by: each login and e-mail that was delivered of a user once, by a token",
    owner="team:platform",
    reads=(Read("bronze.users", WHOLE),),
    columns=(
        replace(c.IDENTITY_TOKEN, nullable=False, description="Keyed hash of the user, the login and the e-mail"),
        *c.CALLED,
        c.count("snapshots", "Delivered and changed rows it stands for", sourceless="their number"),
    ),
    key=("identity",),
    stands_for="sum(snapshots)",
    reasons={"unchanged": "sum(snapshots - 1)"},
    left_out={"dead_lettered": "", "deleted": "changes that delete their users"},
    statistics=("snapshots",),
    encrypted=Encrypted(columns=("login", "email"), key="identities-key", row="identity"),
    patterns=("Vertical Partitioner", "Pseudo-Anonymizer", "Encryptor", "Audit-Write-Audit-Publish", "Data Overwrite"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
_apart = partial(
    split, columns=[column.name for column in c.CALLED], of=IDENTITIES.dataset, key=(c.IDENTITY_TOKEN.name,)
)
"""Takes what users are called by out of a contract."""

USERS = _apart(
    Contract(
        dataset="silver.users",
        description="Users with their history: one row per version (SCD2), the current one marked",
        owner="team:analytics",
        reads=(Read("bronze.users", WHOLE),),
        columns=(
            c.of_user("user_id", "The user; joins visits", nullable=False),
            *c.USER,
            c.IDENTITY_TOKEN,
            c.user_time(
                "valid_from",
                "First instant it holds: that of the change, the day that delivered it, or, for the first full"
                " delivery, the registration",
                nullable=False,
            ),
            c.fact("valid_to", "First instant it no longer holds; null when open", type="TIMESTAMP"),
            c.flag("is_current", "The version that holds now"),
            c.count("snapshots", "Delivered and changed rows the version stands for"),
        ),
        key=("user_id", "valid_from"),
        rules=(
            RowRule("valid_range", "valid_to IS NULL OR valid_from < valid_to", "A version holds for some time"),
            RowRule("current_is_open", "is_current = (valid_to IS NULL)", "The current version is the open one"),
        ),
        audits=(
            Audit(
                "one_current_version",
                "count_if(is_current) = count(distinct case when is_current then user_id end)",
                "No user has two current versions",
            ),
        ),
        stands_for="sum(snapshots)",
        reasons={"unchanged": "sum(snapshots - 1)"},
        left_out={"dead_lettered": "", "deleted": "rows of the instants at which a change deletes their users"},
        measures={"current": "count_if(is_current)"},
        statistics=("valid_to",),
        patterns=("Vertical Partitioner", "Audit-Write-Audit-Publish", "Data Overwrite"),
        freshness_hours=24,
        watch=Watch(lag=Lag()),
    )
)

USERS_CURRENT = _apart(
    Contract(
        dataset="silver.users_current",
        description="Users as of the newest delivery and the changes since, one row each",
        owner="team:analytics",
        reads=(Read("bronze.users", SAME), Read("silver.users_current", InTurn())),
        write=InOrder(period=Grain.DAY, replay_limit=30),
        columns=(
            c.of_user("user_id", "The user; joins visits", nullable=False),
            *c.USER,
            c.IDENTITY_TOKEN,
            c.text("changed_on", "Day of the delivery or change that made the row what it is (UTC)"),
            c.count(
                "occurrences",
                "Usable rows it stands for, of the newest full delivery and changes since; 0 when that has dead"
                " letters of the user only",
            ),
        ),
        key=("user_id",),
        rules=(
            RowRule("delivered", "occurrences >= 0", "A row stands for usable ones, or is kept for one that is not"),
        ),
        rows_in="rows of the newest full delivery, and of changes since",
        stands_for="sum(occurrences)",
        reasons={"duplicates": "sum(greatest(occurrences - 1, 0))", "kept": "-count_if(occurrences = 0)"},
        left_out={
            "dead_lettered": "",
            "deleted": "rows of users up to the day on which a change deleted them",
            # These rows count as rows out but not as rows in.
            "kept": "below zero: rows that stay because the delivery names their users, in dead letters only",
        },
        measures={"newest_change": "max(changed_on)"},
        statistics=("changed_on",),
        patterns=("Vertical Partitioner", "Merger", "Stateful Merger", "Single Runner", "Audit-Write-Audit-Publish"),
        freshness_hours=24,
        watch=Watch(lag=Lag()),
    )
)
