from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import plans
from blogdata.errors import TransientError
from blogdata.operate import processes, spark_attached, spark_connect, spark_launch
from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer, SparkServerLost, SparkServerUnreachable
from kills import kill
from resources.spark import SparkResource


def small(settings: Settings, home: Path) -> Settings:
    """The tests' settings with a separate home and a small Spark, also for other processes of this home."""
    options = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in plans.COMPILED_ONCE.items())
    (home / "blogdata.toml").write_text(f"[spark.conf]\n{options}", encoding="utf-8")
    spark = replace(settings.spark, heap="600m", conf=tuple(plans.COMPILED_ONCE.items()))
    return replace(settings, home=home, landing=home / "landing", lake=home / "lake", spark=spark)


@pytest.fixture(scope="module")
def own(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A deployment whose server a module's tests start, kill and change."""
    mine = small(settings, tmp_path_factory.mktemp("own"))
    yield mine
    spark_connect.stop(mine)


@pytest.fixture
def fresh(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A deployment of one test, where nothing runs yet."""
    mine = small(settings, tmp_path)
    yield mine
    spark_connect.stop(mine)


def starter(settings: Settings) -> subprocess.Popen[str]:
    """Start a process that requests the server of the same deployment, prints its process number and ends."""
    program = "from blogdata.operate import config, spark_connect as s; print(s.running_server(config.load()).pid)"
    own = {"BLOGDATA_HOME": str(settings.home), "BLOGDATA_JARS": str(settings.jars), "BLOGDATA_SPARK_HEAP": "600m"}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True)


@pytest.mark.campaign
def test_concurrent_starts_share_one_lasting_server(own: Settings) -> None:
    starters = [starter(own), starter(own)]
    answers = [int(process.communicate(timeout=900)[0]) for process in starters]
    assert [process.returncode for process in starters] == [0, 0]
    assert answers[0] == answers[1]
    assert spark_connect.running_server(own).pid == answers[0]
    assert spark_connect.status(own).state == "running"


def test_the_server_hides_its_token(settings: Settings, spark_server: SparkServer) -> None:
    """The test processes share this server, and have started it together; :mod:`.test_neighbours` asks without it."""
    token = spark_server.url.partition("token=")[2]
    assert token
    assert token not in f"{spark_server!r} {spark_connect.status(settings)}"
    assert (settings.home / "services" / "spark" / "server.json").stat().st_mode & 0o077 == 0


@pytest.mark.campaign
def test_a_copied_home_has_a_server_of_its_own(own: Settings, tmp_path: Path) -> None:
    server = spark_connect.running_server(own)
    copy = replace(own, home=tmp_path / "copy", lake=tmp_path / "copy" / "lake")
    subprocess.run(["cp", "-a", own.home, copy.home], check=True)
    assert spark_connect.status(copy).state == "stopped"
    assert not spark_connect.stop(copy)
    assert spark_connect.running_server(copy).pid != server.pid
    assert spark_connect.stop(copy)
    assert spark_connect.status(own).pid == server.pid


@pytest.mark.campaign
def test_a_server_killed_during_work_raises_transient_error(own: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOGDATA_SPARK_HEAP", "600m")
    monkeypatch.setenv("BLOGDATA_JARS", str(own.jars))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    resource = SparkResource(home=str(own.home))
    server = spark_connect.running_server(resource.settings)
    work = resource.spark_session.range(3)

    def killed() -> None:
        kill(server.process)
        work.count()

    with pytest.raises(SparkServerLost) as caught, resource.guard():
        killed()
    assert caught.value.transient
    assert "token" not in str(caught.value)
    with resource.guard() as session:
        assert session.range(3).count() == 3


@pytest.mark.campaign
def test_a_changed_configuration_restarts_the_server(own: Settings, caplog: pytest.LogCaptureFixture) -> None:
    server = spark_connect.running_server(own)
    changed = replace(own, spark=replace(own.spark, conf=(("spark.sql.shuffle.partitions", "3"),)))
    again = spark_connect.running_server(changed)
    assert again.pid != server.pid
    assert f"process {server.pid}) had another configuration" in caplog.text
    session = spark_attached.attach(again.url)
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"
    spark_attached.release(session)


def test_spark_finds_its_own_copy_of_a_class_first_in_any_file_system(settings: Settings) -> None:
    words = spark_launch.command(settings, ["org.apache.spark.deploy.SparkSubmit", "--class", "Any", "spark-internal"])
    path = words[words.index("-cp") + 1].split(os.pathsep)
    assert Path(path[0]).name.startswith("spark-catalyst_")
    assert any(place.endswith("jars/*") for place in path[1:])


def test_changed_readers_of_lines_need_another_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tmp_path / "some_readers" / "__init__.py"
    module.parent.mkdir()
    module.write_text("LONGEST = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(spark_launch, "_WORKER_PACKAGES", ("some_readers",))
    before = spark_launch.worker_code()
    assert spark_launch.worker_code() == before
    module.write_text("LONGEST = 12\n")
    assert spark_launch.worker_code() != before


@pytest.mark.campaign
def test_a_server_that_hangs_is_replaced(
    own: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = spark_connect.running_server(own)
    monkeypatch.setattr(spark_connect, "_PROBE_SECONDS", 2.0)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        assert spark_connect.status(own).state == "silent"
        monkeypatch.setattr(spark_connect, "_PATIENCE_SECONDS", 2.0)
        monkeypatch.setattr(processes, "_STOP_SECONDS", 2.0)
        again = spark_connect.running_server(own)
    finally:
        if server.process is not None and processes.is_alive(server.process):
            os.kill(server.pid, signal.SIGCONT)
    assert "did not answer" in caplog.text
    assert again.pid != server.pid


def test_a_failed_start_reports_its_log_and_ends(fresh: Settings) -> None:
    wrong = replace(fresh, spark=replace(fresh.spark, master="nonsense"))
    with pytest.raises(TransientError, match="Master must") as caught:
        spark_connect.running_server(wrong)
    assert caught.value.where.endswith("server.log")
    assert caught.value.transient
    assert spark_connect.status(fresh).state == "stopped"


def test_a_remote_server_is_used_and_never_stopped(fresh: Settings, spark_server: SparkServer) -> None:
    theirs = replace(fresh, spark=replace(fresh.spark, remote=spark_server.url))
    assert spark_connect.running_server(theirs) == SparkServer(url=spark_server.url, process=None)
    assert not spark_connect.stop(theirs)
    spark_connect.probe(spark_server.url)
    silent = replace(fresh, spark=replace(fresh.spark, remote=f"sc://localhost:{processes.free_port()}"))
    with pytest.raises(SparkServerUnreachable, match="does not answer") as caught:
        spark_connect.running_server(silent)
    assert caught.value.transient


def test_a_session_the_server_forgot_is_replaced(
    spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", spark_server.url)
    resource = SparkResource(home=str(tmp_path))
    before = resource.spark_session
    before.client.release_session()
    with pytest.raises(SparkServerLost), resource.guard():
        before.range(3).count()
    after = resource.spark_session
    assert after is not before
    assert after.range(3).count() == 3
    spark_attached.drop(resource.settings)
