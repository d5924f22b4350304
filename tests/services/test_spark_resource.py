from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blogdata.services import spark_attached
from blogdata.services.spark_connect import SparkServer
from resources import spark as spark_resources
from resources.spark import SparkResource


@pytest.fixture
def resource(spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkResource]:
    """A resource of a deployment that uses the tests' server."""
    monkeypatch.setenv("SPARK_REMOTE", spark_server.url)
    made = SparkResource(home=str(tmp_path), spark_config={"spark.sql.shuffle.partitions": "7"})
    yield made
    spark_resources.drop(made.settings)


def test_resource_configuration_overrides_the_servers(resource: SparkResource) -> None:
    assert resource.spark_session.conf.get("spark.sql.shuffle.partitions") == "7"


def test_a_query_error_passes_the_guard_unchanged(resource: SparkResource) -> None:
    session = resource.spark_session
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"), resource.guard() as guarded:
        guarded.sql("SELECT 1 / 0").collect()
    assert resource.spark_session is session


def test_a_session_the_server_forgot_is_replaced(resource: SparkResource, monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.spark_session
    before.client.release_session()
    monkeypatch.setattr(spark_attached, "_UNCHECKED_SECONDS", 0.0)
    after = resource.spark_session
    assert after is not before
    assert after.range(3).count() == 3
