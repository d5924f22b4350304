import hmac
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import functions as F

from assets.gold.visits_weekly import PURPOSE, user_bucket
from blogdata.contract.contract import Contract
from blogdata.contract.schema import Buckets
from blogdata.patterns.storage import bucket
from blogdata.patterns.storage.bucket import Together, UsersNotTogether
from blogdata.table import tables
from blogdata.table.lake import Lake, Stored
from plans import plan_of
from toy import declared

SECRET = "s" * 32
WEEKS = ("2026-01-05", "2026-01-12")
NUMBER = 16
VIEWS = declared(
    "gold.visits_weekly",
    "week STRING NOT NULL, user_id STRING, user_bucket INT, page STRING",
    by="week",
    statistics=("user_bucket",),
    buckets=Buckets(column="user_bucket", of="user_id", number=NUMBER),
)
ORDERS = replace(VIEWS, dataset="gold.orders")
OTHERWISE = replace(VIEWS, dataset="gold.otherwise", buckets=Buckets(column="user_bucket", of="user_id", number=8))
OLDER = replace(VIEWS, dataset="gold.older")


def rows(spark: Any, number: int, users: int, buckets: int = NUMBER) -> Any:
    """Rows of both weeks in the order of time; every eleventh has no user, and each week has users of its own."""
    user = F.when(F.col("id") % 11 != 0, F.concat(F.lit("u"), F.col("id") * 7 % users + F.col("id") % 2 * 100))
    frame = spark.range(number).select(
        F.when(F.col("id") % 2 == 0, WEEKS[0]).otherwise(WEEKS[1]).alias("week"),
        user.alias("user_id"),
        F.concat(F.lit("/"), F.col("id") % 13).alias("page"),
    )
    return frame.withColumn("user_bucket", user_bucket(F.col("user_id"), buckets, SECRET))


def save(lake: Lake, contract: Contract, frame: Any) -> None:
    """Append rows to a dataset's table, sorted by bucket into four files a week."""
    tables.enforce(frame.sparkSession, lake, contract)
    rows = frame.repartitionByRange(4, "user_bucket").select(*[column.name for column in contract.columns])
    rows.write.format("delta").mode("append").save(lake.path(contract.dataset))


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(root=str(tmp_path_factory.mktemp("buckets")))
    save(lake, VIEWS, rows(spark, 3_000, 397))
    save(lake, ORDERS, rows(spark, 300, 499))
    return lake


def stored(lake: Lake, contract: Contract = VIEWS, weeks: tuple[str, ...] = WEEKS) -> Stored:
    version = lake.version(contract.dataset)
    assert version is not None
    return Stored(lake=lake, dataset=contract.dataset, version=version, partitions=weeks)


def values(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.usefixtures("usual_plans")
def test_a_join_and_an_aggregation_by_user_need_no_exchange(spark: Any, lake: Lake) -> None:
    views, orders = (lake.read(spark, contract.dataset) for contract in (VIEWS, ORDERS))
    measures = (F.count(F.lit(1)).alias("views"), F.count_distinct("page").alias("pages"))
    counted_orders = F.count(F.lit(1)).alias("orders")
    counted = orders.groupBy("user_id").agg(counted_orders)
    shuffled = views.groupBy("user_id").agg(*measures).join(counted.hint("merge"), "user_id", "left")
    assert "Exchange hashpartitioning" in plan_of(shuffled)

    ours = bucket.read(spark, stored(lake), tasks=3).aggregate(("user_id",), *measures)
    theirs = bucket.read(spark, stored(lake, ORDERS), tasks=3).aggregate(("user_id",), counted_orders)
    together = ours.join(theirs, "left").frame()
    assert "Exchange" not in plan_of(together)
    assert plan_of(together).count("Coalesce 1") == 6
    joined = values(together.select(*shuffled.columns))
    assert joined == values(shuffled)
    assert len(joined) == 498, "rows without a user are one group, once"
    with pytest.raises(UsersNotTogether, match="together by user_id, and the groups are by page"):
        ours.aggregate(("page",), F.count("page"))
    with pytest.raises(UsersNotTogether, match="3 tasks with 16 buckets of user_id, and 2 with 16"):
        ours.join(bucket.read(spark, stored(lake, ORDERS), tasks=2))


@pytest.mark.campaign
def test_the_buckets_are_those_of_the_log(spark: Any, lake: Lake) -> None:
    write_deltalake(lake.path(OLDER.dataset), pa.table({"week": WEEKS, "page": WEEKS}), partition_by=["week"])
    with pytest.raises(UsersNotTogether, match="states no buckets"):
        bucket.read(spark, stored(lake, OLDER))
    frame = rows(spark, 200, 30, buckets=8)
    save(lake, OTHERWISE, frame)
    ours, theirs = (bucket.read(spark, stored(lake, contract), tasks=2) for contract in (ORDERS, OTHERWISE))
    with pytest.raises(UsersNotTogether, match="16 buckets of user_id, and 2 with 8 buckets"):
        ours.join(theirs)

    # Trusting loses pairs without a word: the same user is in another task of the other table.
    trusted = Together(parts=theirs.parts, buckets=ours.buckets)
    usual = lake.read(spark, ORDERS.dataset).where("user_id IS NOT NULL").join(frame, "user_id").count()
    assert 0 < ours.join(trusted).frame().count() < usual

    # A row with a user and no bucket would be a group of its own.
    save(lake, OTHERWISE, frame.limit(2).withColumn("user_bucket", F.lit(None).cast("int")))
    with pytest.raises(Exception, match=r"gold.otherwise: a row has user_id and no user_bucket"):
        bucket.read(spark, stored(lake, OTHERWISE)).aggregate(("user_id",), F.count("page")).frame().collect()


def test_the_bucket_is_a_keyed_hash_of_the_user(spark: Any) -> None:
    users = [f"user-{number}" for number in range(1_000)]
    frame = spark.createDataFrame([(user,) for user in [*users, None]], "user_id STRING")
    buckets = dict(frame.select("user_id", user_bucket(F.col("user_id"), 64, SECRET)).collect())
    assert buckets.pop(None) is None
    key = hmac.digest(SECRET.encode(), PURPOSE.encode(), "sha256")
    assert buckets == {user: int(hmac.digest(key, user.encode(), "sha256").hex()[:15], 16) % 64 for user in users}
    sizes = Counter(buckets.values())
    assert (len(sizes), max(sizes.values()) < 40) == (64, True)
