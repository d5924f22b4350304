from __future__ import annotations

from collections.abc import Callable

import pytest

from blogdata.services import spark_attached, spark_connect, spark_probe
from blogdata.services.config import Settings
from blogdata.services.processes import ProcessIdentity
from kills import kill
from resources import spark as spark_resources
from resources.spark import SparkResource


@pytest.fixture
def resource(own: Settings, monkeypatch: pytest.MonkeyPatch) -> SparkResource:
    monkeypatch.setenv("BLOGDATA_SPARK_HEAP", "600m")
    monkeypatch.setenv("BLOGDATA_JARS", str(own.jars))
    return SparkResource(home=str(own.home), mode="local")


def killed_under(process: ProcessIdentity | None, work: Callable[[], int]) -> int:
    kill(process)
    return work()


def test_resource_configuration_overrides_the_servers(own: Settings, resource: SparkResource) -> None:
    spark_resources.drop(resource.settings)
    configured = SparkResource(home=str(own.home), mode="local", spark_config={"spark.sql.shuffle.partitions": "7"})
    assert configured.spark_session.conf.get("spark.sql.shuffle.partitions") == "7"
    spark_resources.drop(configured.settings)


@pytest.mark.campaign
def test_a_server_killed_during_work_raises_transient_error(resource: SparkResource) -> None:
    server = spark_connect.running_server(resource.settings)
    work = resource.spark_session.range(3)
    with pytest.raises(spark_probe.SparkServerLost) as caught, resource.guard():
        killed_under(server.process, work.count)
    assert caught.value.transient
    assert "token" not in str(caught.value)
    with resource.guard() as session:
        assert session.range(3).count() == 3


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
