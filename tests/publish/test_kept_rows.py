"""Rows that Spark caches for a client are released explicitly, and never by the garbage collector."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.plan import RemoveRemoteCachedRelation

from blogdata.publish import kept_rows
from blogdata.publish.target import Engine


@pytest.fixture
def forgetful(spark: Any, session: Any) -> Any:
    """A session that is not the default and looks plans up again; the known session's plans lack their rows."""
    assert spark is not None
    session.conf.set("spark.connect.session.planCache.enabled", "false")
    return session


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the releases sent to the server, by the server's name of the rows."""
    names: list[str] = []
    command = RemoveRemoteCachedRelation.command

    def noted(self: Any, session: Any) -> Any:
        names.append(self._relation._relation_id)
        return command(self, session)

    monkeypatch.setattr(RemoveRemoteCachedRelation, "command", noted)
    return names


@pytest.mark.parametrize(
    ("engine", "gone"), [(Engine.TRANSACTION, "TABLE_OR_VIEW_NOT_FOUND"), (Engine.CHECKPOINT, "No DataFrame with id")]
)
def test_rows_are_computed_once_and_released_after_use(
    forgetful: Any, releases: list[str], engine: Engine, gone: str
) -> None:
    with kept_rows.computed(forgetful.range(3).selectExpr("id", "uuid() AS drawn"), engine) as rows:
        drawn = {row["drawn"] for row in rows.collect()}
        assert {row["drawn"] for row in rows.collect()} == drawn
        assert releases == []
    assert len(releases) == (engine is Engine.CHECKPOINT)
    with pytest.raises(PySparkException, match=gone):
        rows.collect()
