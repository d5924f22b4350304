"""Rows that Spark caches for a client are released explicitly, and never by the garbage collector."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from blogdata.table import kept_rows


@pytest.fixture
def forgetful(spark: Any, session: Any) -> Any:
    """A session that is not the default and looks plans up again; the known session's plans lack their rows."""
    assert spark is not None
    session.conf.set("spark.connect.session.planCache.enabled", "false")
    return session


def test_rows_are_computed_once_and_released_after_use(forgetful: Any) -> None:
    with kept_rows.computed(forgetful.range(3).selectExpr("id", "uuid() AS drawn")) as rows:
        drawn = {row["drawn"] for row in rows.collect()}
        assert {row["drawn"] for row in rows.collect()} == drawn
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.collect()
