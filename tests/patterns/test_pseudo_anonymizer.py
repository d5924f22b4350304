import hashlib
from typing import Any

from pyspark.sql import functions as F

from assets.gold import visits_weekly
from blogdata.patterns.security.pseudo_anonymizer import ID_DIGITS, masked_email, token

SECRET = "s" * 32
USERS = [f"u{number}" for number in range(60)]
VIEWS = [
    # Every other visitor asks in the middle of the visit not to be shared.
    (f"visit-{user}", user, bool(number % 2) and at == 1, f"/post-{at}", f"Browser {number}")
    for number, user in enumerate(USERS)
    for at in range(3)
]


def test_a_private_page_view_leads_to_nobody_by_its_visit(spark: Any) -> None:
    visits = spark.createDataFrame(
        VIEWS, "visit_id STRING, user_id STRING, keep_private BOOLEAN, page STRING, browser STRING"
    ).withColumns(
        {
            "event_week": F.lit("2026-01-05"),
            "event_time": F.to_timestamp(F.lit("2026-01-05 10:00:00")),
            "user_known": F.lit(True),
            **dict.fromkeys(
                ("ad_id", "referral_host", "network_type", "device_type", "device_name"), F.lit(None).cast("string")
            ),
        }
    )
    weekly = visits_weekly.for_analysts(visits, SECRET).collect()
    owners = {row["visit_id"]: row["user_id"] for row in weekly if row["user_id"]}
    private = [row for row in weekly if row["keep_private"]]
    assert (len(private), len(owners)) == (30, 60)
    assert [row for row in private if row["visit_id"] in owners] == []
    # By the visit itself each of them led to the user, in the row beside it.
    named = {visit: user for visit, user, hidden, *_ in VIEWS if not hidden}
    assert all(visit in named for visit, _, hidden, *_ in VIEWS if hidden)


def test_a_dictionary_finds_every_unkeyed_hash_and_no_token(spark: Any) -> None:
    shown = spark.createDataFrame([(user,) for user in USERS], "user STRING").select(
        F.substring(F.sha2("user", 256), 1, ID_DIGITS).alias("unkeyed"),
        token(F.col("user"), SECRET, "one place").alias("token"),
        token(F.col("user"), SECRET, "another place").alias("elsewhere"),
    )
    rows = shown.collect()
    # The attacker knows no user, only what their ids look like.
    dictionary = {hashlib.sha256(f"u{number}".encode()).hexdigest()[:ID_DIGITS]: number for number in range(1000)}
    assert [dictionary[row["unkeyed"]] for row in rows] == list(range(60))
    assert not dictionary.keys() & {row["token"] for row in rows}
    assert not {row["token"] for row in rows} & {row["elsewhere"] for row in rows}, "two places cannot be joined"
    assert len({row["token"] for row in rows}) == len(USERS)


MASKS = [
    ("ann@mail.example", "a***@mail.example"),
    ("\u00f6zil@mail.example", "\u00f6***@mail.example"),
    ("Ann Smith <ann@mail.example>", "***"),
    ("ann@smith@mail.example", "***"),
    ("ann@mail.example\nann", "***"),
    ("", "***"),
    (None, None),
]


def test_a_mask_leaves_the_first_letter_and_the_domain(spark: Any) -> None:
    rows = spark.createDataFrame(MASKS, "email STRING, masked STRING").selectExpr(masked_email("email"), "masked")
    assert [row for row in rows.collect() if row[0] != row[1]] == []
