"""Any text sent by visitors can be served; a text that the database cannot store is refused with its reason.

Pattern: Transactional Writer.
"""

from __future__ import annotations

import random
import string
from dataclasses import replace

import psycopg
import pytest

from blogdata.errors import PlatformError, TransientError
from blogdata.patterns.idempotency.transactional_sink import RowsRefused, SinkDelivery
from blogdata.services.postgres_connection import PostgresUnreachable
from idempotency.test_transactional_sink import DAY, SCHEMA, both, deliver, delivery, part, shown

LONG = "/" + "".join(random.Random(1).choices(string.ascii_letters, k=8000))
"""More than PostgreSQL indexes, also when it is compressed."""
MD5_TWINS = tuple(f"TEXTCOLLBYfGiJUETHQ4h{letter}cKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak" for letter in "AE")
"""Two texts of one MD5, found by Marc Stevens."""


def texts(*items: str, version: int = 1) -> SinkDelivery:
    return SinkDelivery(
        partition=DAY,
        parts=[
            part(name, version, {item: number for number, item in enumerate(items)}) for name in ("sales", "returns")
        ],
        run_id="run",
    )


@pytest.mark.parametrize(
    ("items", "there"),
    [
        (["/\0"], ["/\u2400"]),
        (["/\0", "/\u2400", "/\u241b\0", "/\u241b\u2400"], None),
        ([LONG], None),
        (["\\x41", "A", "\\", "\\\\", "\\101"], None),
        (list(MD5_TWINS), list(MD5_TWINS)),
    ],
    ids=["NUL", "what looks like NUL", "more than an index takes", "backslashes", "one MD5"],
)
def test_any_text_that_a_visitor_sends_is_served(database: str, items: list[str], there: list[str] | None) -> None:
    deliver(database, texts(*items))
    with psycopg.connect(database) as connection:
        for name in ("sales", "returns"):
            found = [item for (item,) in connection.execute(f"SELECT item FROM {SCHEMA}.{name} ORDER BY sold")]
            assert len(set(found)) == len(items)
            assert there is None or found == there


def test_one_key_twice_is_refused(database: str) -> None:
    deliver(database, delivery(1))
    twice = part("sales", 2, {"item": 1})
    twice = replace(twice, rows=2, batches=[*twice.batches, *twice.batches])
    with pytest.raises(RowsRefused, match="sales_key"):
        deliver(database, SinkDelivery(partition=DAY, parts=[twice, part("returns", 2, {})], run_id="run"))
    assert shown(database) == both(1)


def test_texts_too_long_for_an_index_are_refused(database: str) -> None:
    deliver(database, delivery(1))
    with psycopg.connect(database) as connection:
        connection.execute("CREATE INDEX ON shop.sales (item)")
    with pytest.raises(RowsRefused, match="ProgramLimitExceeded"):
        deliver(database, texts(LONG, version=2))
    assert shown(database) == both(1)


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
