from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blogdata.operate import spark_attached
from blogdata.operate.spark_connect import SparkServer, SparkServerLost
from blogdata.runs.resources import SparkResource


@pytest.fixture
def resource(spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkResource]:
    """A resource of a deployment that uses the tests' server."""
    monkeypatch.setenv("SPARK_REMOTE", spark_server.url)
    made = SparkResource(home=str(tmp_path))
    yield made
    spark_attached.drop(made.settings)


def test_a_session_the_server_forgot_is_replaced(resource: SparkResource) -> None:
    before = resource.spark_session
    before.client.release_session()
    with pytest.raises(SparkServerLost), resource.guard():
        before.range(3).count()
    after = resource.spark_session
    assert after is not before
    assert after.range(3).count() == 3
