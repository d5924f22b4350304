"""The raw part of a wrapped row or record equals what was received."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.orchestration import partner
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.data_value.outbox import Delivery
from blogdata.patterns.data_value.wrapper import NotWrappable
from blogdata.publish.writes import Feed


def received(spark: Any) -> Any:
    rows = [(1, b'{"page":"/"}', "/"), (2, b"\xff\x00\r", None), (3, b"", " /b ")]
    return spark.createDataFrame(rows, "id INT, line BINARY, page STRING")


def test_raw_columns_stay_byte_for_byte_before_the_computed_ones(spark: Any) -> None:
    frame = received(spark)
    wrapped = wrapper.beside(frame, {"path": F.trim("page"), "size": F.length("line")})
    assert wrapped.columns == [*frame.columns, "path", "size"]
    raw = wrapped.select(*frame.columns)
    assert raw.schema == frame.schema
    assert raw.orderBy("id").collect() == frame.orderBy("id").collect()


def test_a_computed_column_cannot_replace_a_raw_one(spark: Any) -> None:
    naive = received(spark).withColumn("page", F.trim("page"))
    assert naive.where("id = 3").collect()[0].page != " /b "
    with pytest.raises(NotWrappable, match="page"):
        wrapper.beside(received(spark), {"page": F.trim("page")})


def test_a_wrapper_around_nothing_computed_is_refused(spark: Any) -> None:
    with pytest.raises(NotWrappable, match="nothing is computed"):
        wrapper.beside(received(spark), {})


def test_a_partner_gets_the_row_in_an_envelope() -> None:
    """A column of the row may have the name of a computed value: they are apart."""
    one = Delivery(id="i", key="u", sequence=3, payload='{"key":"k","page":" /b "}')
    write = Feed(key="user_id", at="event_time", identity=(), payload=("key", "page"), unless="keep_private")
    sent = partner.told(one, write=write, secret="s")
    token = partner.known_as("u", "s")
    assert sent == {"key": token, "sequence": 3, "payload": {"key": "k", "page": " /b "}}


def test_a_computed_value_cannot_replace_the_record() -> None:
    with pytest.raises(NotWrappable, match="payload"):
        wrapper.envelope({"page": "/"}, {"payload": 1}, field="payload")
