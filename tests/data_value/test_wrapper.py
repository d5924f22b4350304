"""The raw part of a wrapped row equals the received bytes, in every layout."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.patterns.data_value import wrapper
from blogdata.patterns.data_value.wrapper import Layout, NotWrappable


def received(spark: Any) -> Any:
    rows = [(1, b'{"page":"/"}', "/"), (2, b"\xff\x00\r", None), (3, b"", " /b ")]
    return spark.createDataFrame(rows, "id INT, line BINARY, page STRING")


@pytest.mark.parametrize("layout", list(Layout))
def test_the_raw_part_comes_back_byte_for_byte(spark: Any, layout: Layout) -> None:
    frame = received(spark)
    wrapped = wrapper.wrap(frame, {"path": F.trim("page"), "size": F.length("line")}, layout, key=("id",))
    raw = wrapped.rows.select("raw.*" if layout is Layout.RAW_NESTED else "*").select(*frame.columns)
    assert raw.schema == frame.schema
    assert raw.orderBy("id").collect() == frame.orderBy("id").collect()


@pytest.mark.parametrize(
    ("layout", "columns"),
    [
        (Layout.COMPUTED_NESTED, ["id", "line", "page", "computed"]),
        (Layout.RAW_NESTED, ["path", "raw"]),
        (Layout.FLAT, ["id", "line", "page", "path"]),
        (Layout.SEPARATE, ["id", "line", "page"]),
    ],
)
def test_each_layout_puts_the_parts_where_it_says(spark: Any, layout: Layout, columns: list[str]) -> None:
    wrapped = wrapper.wrap(received(spark), {"path": F.trim("page")}, layout, key=("id",))
    assert wrapped.rows.columns == columns
    assert (wrapped.computed is not None) == (layout is Layout.SEPARATE)


def test_two_tables_come_together_by_the_key(spark: Any) -> None:
    wrapped = wrapper.wrap(received(spark), {"path": F.trim("page")}, Layout.SEPARATE, key=("id",))
    assert wrapped.computed is not None
    assert wrapped.computed.columns == ["id", "path"]
    together = wrapped.rows.join(wrapped.computed, "id").orderBy("id").collect()
    assert [row.path for row in together] == ["/", None, "/b"]


def test_a_computed_column_cannot_replace_a_raw_one(spark: Any) -> None:
    naive = received(spark).withColumn("page", F.trim("page"))
    assert naive.where("id = 3").collect()[0].page != " /b "
    with pytest.raises(NotWrappable, match="page"):
        wrapper.wrap(received(spark), {"page": F.trim("page")}, Layout.FLAT)


def test_the_nested_layouts_keep_equal_names_apart(spark: Any) -> None:
    wrapped = wrapper.wrap(received(spark), {"page": F.trim("page")}, Layout.RAW_NESTED)
    row = wrapped.rows.where(F.col("raw")["id"] == 3).collect()[0]
    assert (row.page, row.raw.page) == ("/b", " /b ")


@pytest.mark.parametrize(
    ("layout", "name", "key"),
    [
        (Layout.SEPARATE, "path", ()),
        (Layout.SEPARATE, "path", ("nobody",)),
        (Layout.SEPARATE, "id", ("id",)),
        (Layout.RAW_NESTED, "raw", ()),
    ],
)
def test_indistinguishable_parts_are_refused(spark: Any, layout: Layout, name: str, key: tuple[str, ...]) -> None:
    with pytest.raises(NotWrappable):
        wrapper.wrap(received(spark), {name: F.lit(1)}, layout, key=key)


def test_a_wrapper_around_nothing_computed_is_refused(spark: Any) -> None:
    with pytest.raises(NotWrappable, match="nothing is computed"):
        wrapper.wrap(received(spark), {})
