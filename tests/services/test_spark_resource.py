from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from blogdata.services import config, spark_attached, spark_connect, spark_probe
from blogdata.services.config import Settings
from blogdata.services.processes import ProcessIdentity
from kills import kill
from resources import spark as spark_resources
from resources.spark import SparkResource

CODEC = "spark.sql.parquet.compression.codec"


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


def test_sessions_on_remote_servers_set_the_file_codec(
    resource: SparkResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_attached, "TABLE_FILES", {CODEC: "gzip"})
    theirs = SparkResource(
        home=resource.home, remote=spark_connect.running_server(resource.settings).url, mode="remote"
    )
    assert theirs.spark_session.conf.get(CODEC) == "gzip"
    assert resource.spark_session.conf.get(CODEC) == "zstd"
    spark_resources.drop(theirs.settings)


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


@pytest.mark.campaign
@pytest.mark.slow
def test_a_classic_session_writes_and_reads_delta_tables(own: Settings, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from resources.spark import SparkResource\n"
        "home, table = sys.argv[1:]\n"
        "spark = SparkResource(home=home, mode='classic').spark_session\n"
        "spark.range(4).write.format('delta').save(table)\n"
        "print(type(spark).__module__, spark.read.format('delta').load(table).count())\n"
        "spark.stop()\n"
    )
    spark_connect.stop(own)
    environment = {**os.environ, "BLOGDATA_SPARK_HEAP": "600m", "SPARK_REMOTE": "sc://localhost:1"}
    command = [sys.executable, "-c", program, str(own.home), str(tmp_path / "table")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["pyspark.sql.session", "4"]


def test_a_resource_reads_nothing_before_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "load", lambda *_, **__: pytest.fail("settings were read"))
    SparkResource(home=str(tmp_path / "absent"))
    assert not (tmp_path / "absent").exists()
