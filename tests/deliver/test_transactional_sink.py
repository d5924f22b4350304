"""Two tables of a database are served together or not at all: refused and lost rows, retries, duplicates.

Pattern: Transactional Writer.
"""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Column, Migration, Partitioning
from blogdata.deliver import transactional_sink
from blogdata.deliver.transactional_sink import RowsRefused, ServedTable, SinkDelivery
from blogdata.errors import PlatformError, TransientError
from blogdata.operate import postgres_connection
from blogdata.operate.postgres_connection import PostgresUnreachable
from toy import declared

SCHEMA = "shop"
DAY = "2026-01-05"
OTHER_DAY = "2026-01-06"


SALES, RETURNS = (
    declared(
        f"gold.{name}",
        "day STRING NOT NULL, item STRING NOT NULL, sold BIGINT",
        key=("day", "item"),
        partitioning=Partitioning(column="day", grain=Grain.DAY),
    )
    for name in ("sales", "returns")
)


def part(contract: Contract, version: int, items: Mapping[str, int | None], day: str = DAY) -> ServedTable:
    """One table of a delivery, in batches of two rows."""
    table = pa.Table.from_pylist([{"day": day, "item": item, "sold": sold} for item, sold in items.items()])
    batches = table.to_batches(max_chunksize=2)
    return ServedTable(contract=contract, table_id="table", version=version, rows=len(items), batches=batches)


def delivery(version: int, day: str = DAY, items: Mapping[str, int | None] | None = None) -> SinkDelivery:
    """Sales and returns of one day, whose rows name their version unless they are given."""
    items = items or {f"item {number}": version for number in range(3)}
    parts = [part(contract, version, items, day) for contract in (SALES, RETURNS)]
    return SinkDelivery(partition=day, parts=parts, run_id="run")


def deliver(url: str, what: SinkDelivery) -> bool:
    with postgres_connection.connected(url) as connection:
        connection.autocommit = True
        return transactional_sink.deliver(connection, SCHEMA, what)


def shown(url: str) -> dict[tuple[str, str], list[int | None]]:
    """Read the visible versions, per table and day."""
    versions: dict[tuple[str, str], list[int | None]] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("sales", "returns"):
            for day, sold in connection.execute(f"SELECT day, sold FROM {SCHEMA}.{name} ORDER BY 1, 2"):
                versions.setdefault((name, day), []).append(sold)
    return versions


def both(version: int, day: str = DAY) -> dict[tuple[str, str], list[int | None]]:
    return {("sales", day): [version] * 3, ("returns", day): [version] * 3}


def test_a_day_of_both_tables_is_replaced_whole_and_a_retry_changes_nothing(database: str) -> None:
    deliver(database, delivery(1))
    deliver(database, delivery(1, OTHER_DAY))
    first, retry = deliver(database, delivery(2)), delivery(2)
    again = deliver(database, replace(retry, parts=[part(SALES, 2, {"else": 9}), retry.parts[1]]))
    assert (first, again) == (False, True)
    assert shown(database) == {**both(2), **both(1, OTHER_DAY)}
    with psycopg.connect(database) as connection:
        assert transactional_sink.served(connection, SCHEMA)["gold.sales", "table", DAY] == 2


def test_rows_that_contradict_the_ledger_are_not_served(database: str) -> None:
    deliver(database, delivery(1))
    sales, returns = delivery(2).parts
    with pytest.raises(RowsRefused, match="has 4 rows by its ledger, but 3 arrived"):
        deliver(database, replace(delivery(2), parts=[replace(sales, rows=4), returns]))
    assert shown(database) == both(1)


def test_an_older_version_never_replaces_a_newer_one(database: str) -> None:
    deliver(database, delivery(2))
    with pytest.raises(TransientError):
        deliver(database, delivery(1))
    assert shown(database) == both(2)


def test_an_older_table_gains_the_new_column(database: str) -> None:
    older = replace(SALES, columns=SALES.columns[:2])
    for day in (DAY, OTHER_DAY):
        first = delivery(1, day)
        deliver(database, replace(first, parts=[replace(first.parts[0], contract=older), first.parts[1]]))
    deliver(database, delivery(2))
    nothing = {("sales", OTHER_DAY): [None] * 3}
    assert shown(database) == {**both(2), **both(1, OTHER_DAY), **nothing}

    # If a dataset has not been published again, there is nothing to serve there.
    sales, returns = delivery(3).parts
    rows = pa.Table.from_batches(sales.batches).drop_columns("sold").to_batches()
    deliver(database, SinkDelivery(partition=DAY, parts=[replace(sales, batches=rows), returns], run_id="run"))
    assert shown(database)["sales", DAY] == [None] * 3


def test_a_renamed_column_is_served_under_both_names(database: str) -> None:
    for day in (DAY, OTHER_DAY):
        deliver(database, delivery(1, day))
    sales, returns = delivery(2).parts
    renamed = Migration(old="sold", new="quantity", since=date(2026, 1, 1), grace=timedelta(days=9))
    new = Column(name="quantity", type="BIGINT", description="How often")
    columns = (*sales.contract.columns, new)

    def served(version: int, columns: tuple[Column, ...]) -> set[tuple[Any, ...]]:
        of = replace(sales.contract, columns=columns, migrations=(renamed,))
        rows = [{"day": DAY, "item": "one", "sold": version, "quantity": version}]
        part = replace(sales, contract=of, version=version, rows=1, batches=pa.Table.from_pylist(rows).to_batches())
        deliver(database, SinkDelivery(partition=DAY, parts=[part, replace(returns, version=version)], run_id="run"))
        with psycopg.connect(database) as connection:
            names = ", ".join(column.name for column in columns)
            return set(connection.execute(f"SELECT {names} FROM shop.sales"))

    older = {(OTHER_DAY, f"item {number}", 1, 1) for number in range(3)}
    assert served(2, columns) == {(DAY, "one", 2, 2), *older}
    assert served(3, (*columns[:2], new)) == {(DAY, "one", 3), *(row[:3] for row in older)}
    with psycopg.connect(database) as connection, pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT sold FROM shop.sales")


def test_two_deliveries_of_a_day_are_serialized(database: str) -> None:
    deliver(database, delivery(1))
    halfway, go_on = threading.Event(), threading.Event()

    def slow(batches: Any) -> Iterator[Any]:
        halfway.set()
        assert go_on.wait(300)
        yield from batches

    sales, returns = delivery(2).parts
    held = replace(delivery(2), parts=[sales, replace(returns, batches=slow(returns.batches))])
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(deliver, database, held)
        assert halfway.wait(300)
        second = pool.submit(deliver, database, delivery(3))
        assert shown(database) == both(1), "readers never see one half"
        with pytest.raises(TimeoutError):
            second.result(0.3)
        go_on.set()
        first.result(300)
        second.result(300)
    assert shown(database) == both(3)


LONG = "/" + "".join(random.Random(1).choices(string.ascii_letters, k=8000))
"""More than PostgreSQL indexes, also when it is compressed."""


def test_any_text_is_served_and_what_an_index_cannot_hold_is_refused(database: str) -> None:
    deliver(database, delivery(1, items={"/\0": 0, LONG: 1, "\\x41": 2}))
    with psycopg.connect(database) as connection:
        for name in ("sales", "returns"):
            served = [item for (item,) in connection.execute(f"SELECT item FROM {SCHEMA}.{name} ORDER BY sold")]
            assert served == ["/\u2400", LONG, "\\x41"]
        connection.execute("TRUNCATE shop.sales")
        connection.execute("CREATE INDEX ON shop.sales (item)")
    with pytest.raises(RowsRefused, match="ProgramLimitExceeded"):
        deliver(database, delivery(2, items={LONG: 1}))


@pytest.mark.parametrize(
    ("code", "error", "transient"),
    [
        ("53100", PlatformError, False),
        ("57014", PlatformError, False),
        ("40P01", TransientError, True),
        ("57P01", PostgresUnreachable, True),
        ("08006", PostgresUnreachable, True),
    ],
)
def test_only_a_lost_server_is_reported_as_unreachable(
    database: str, code: str, error: type[PlatformError], transient: bool
) -> None:
    deliver(database, delivery(1))
    with psycopg.connect(database) as connection:
        connection.execute(
            "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE 'it fails' USING ERRCODE = '{code}'; END $$"
        )
        connection.execute("CREATE TRIGGER fails BEFORE INSERT ON shop.returns EXECUTE FUNCTION fails()")
    with pytest.raises(error, match="it fails") as failed:
        deliver(database, delivery(2))
    assert failed.value.transient is transient
    assert ("disk" in str(failed.value)) == (code == "53100")
    assert shown(database) == both(1)
