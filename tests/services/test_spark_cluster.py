"""The cluster on which the tests can run (`make test-cluster`): nothing of a deployment.

What a deployment asks of a foreign server is tested on one that is up, in `test_spark_connect.py` and
`test_spark_resource.py`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import spark_cluster
from blogdata.services import processes, spark_connect, spark_session
from blogdata.services.config import Settings
from spark_cluster import SparkCluster

pytestmark = [pytest.mark.slow, pytest.mark.campaign]


@pytest.fixture(scope="module")
def cluster(own: Settings) -> Iterator[SparkCluster]:
    running = spark_cluster.start(own)
    yield running
    spark_connect.stop(own)
    spark_cluster.stop(own)


def test_separate_executors_write_and_read_delta_tables(own: Settings, cluster: SparkCluster, tmp_path: Path) -> None:
    session = spark_session.attach(spark_connect.running_server(cluster.settings(own)).url)
    table = str(tmp_path / "table")
    session.range(1000).selectExpr("id", "id % 7 AS k").write.format("delta").save(table)
    session.sql(f"DELETE FROM delta.`{table}` WHERE k = 3")
    sums = session.read.format("delta").load(table).groupBy("k").count().collect()
    assert sum(row["count"] for row in sums) == 1000 - 143
    workers = {
        row.worker
        for row in session.range(0, 8, 1, 8)
        .selectExpr("java_method('java.lang.System', 'getProperty', 'sun.java.command') AS worker")
        .collect()
    }
    assert all("CoarseGrainedExecutorBackend" in worker for worker in workers)
    spark_session.release(session)


def test_work_goes_on_when_a_worker_is_killed(own: Settings, cluster: SparkCluster) -> None:
    session = spark_session.attach(spark_connect.running_server(cluster.settings(own)).url)
    assert session.range(100).repartition(4).count() == 100
    os.kill(cluster.processes[-1].pid, signal.SIGKILL)
    assert session.range(100).repartition(4).count() == 100
    spark_session.release(session)


def test_the_secret_is_on_no_command_line(own: Settings, cluster: SparkCluster) -> None:
    session = spark_session.attach(spark_connect.running_server(cluster.settings(own)).url)
    assert session.range(100).repartition(4).count() == 100
    assert session.conf.get("spark.authenticate") == "true"
    shown = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert any("CoarseGrainedExecutorBackend" in line for line in shown)
    assert not any(cluster.secret in line for line in shown)
    spark_session.release(session)


def test_stopping_leaves_no_process(own: Settings, cluster: SparkCluster) -> None:
    spark_connect.stop(own)
    assert spark_cluster.stop(own) >= 1
    assert not any(processes.is_alive(process) for process in cluster.processes)
    assert spark_cluster.stop(own) == 0
