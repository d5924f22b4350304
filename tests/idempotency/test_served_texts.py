"""Any text sent by visitors can be served; a text that the database cannot store is refused with its reason.

Pattern: Transactional Writer.
"""

from __future__ import annotations

import random
import string

import psycopg
import pytest

from blogdata.errors import PlatformError, TransientError
from blogdata.patterns.idempotency.transactional_sink import RowsRefused, SinkDelivery
from blogdata.services.postgres_connection import PostgresUnreachable
from idempotency.test_transactional_sink import DAY, SCHEMA, both, deliver, delivery, part, shown

LONG = "/" + "".join(random.Random(1).choices(string.ascii_letters, k=8000))
"""More than PostgreSQL indexes, also when it is compressed."""


def texts(*items: str, version: int = 1) -> SinkDelivery:
    return SinkDelivery(
        partition=DAY,
        parts=[
            part(name, version, {item: number for number, item in enumerate(items)}) for name in ("sales", "returns")
        ],
        run_id="run",
    )


def test_any_text_that_a_visitor_sends_is_served(database: str) -> None:
    deliver(database, texts("/\0", LONG, "\\x41"))
    with psycopg.connect(database) as connection:
        for name in ("sales", "returns"):
            found = [item for (item,) in connection.execute(f"SELECT item FROM {SCHEMA}.{name} ORDER BY sold")]
            assert found == ["/\u2400", LONG, "\\x41"]


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
