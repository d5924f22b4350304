"""An unprivileged user of the same machine, in a real process, tries to access a deployment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import psycopg
import pytest
from pyspark.sql.connect.proto import base_pb2

from blogdata.operate import config, secrets
from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer

ROOT = Path(__file__).parents[2]
NOBODY = 65534
AS_NEIGHBOUR = """
import json, os, pathlib, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
given = json.load(sys.stdin)
"""
LIST = """
def tried(read, path):
    try:
        return bool(read(path))
    except PermissionError:
        return False
print(json.dumps({
    "parent": tried(os.listdir, os.path.dirname(given["home"])),
    "home": tried(os.listdir, given["home"]),
    "reached": [path for path in given["paths"] if tried(os.stat, path)],
}))
"""
PROCESSES = """
found = []
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("cmdline", "environ"):
        try:
            content = (entry / name).read_bytes()
        except OSError:
            continue
        found += [str(entry / name)] if given["token"].encode() in content else []
print(json.dumps(found))
"""


def neighbour(code: str, **given: Any) -> Any:
    """Run code as the other user; return the JSON it prints."""
    script = AS_NEIGHBOUR.format(nobody=NOBODY) + code
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that everybody can enter and list; pytest's own folders are closed to other users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_spark_listens_to_this_machine_only_and_asks_for_its_secret(spark_server: SparkServer, spark: Any) -> None:
    # A UDF's Python process as well; the first session makes Spark serve its artifact folder.
    assert spark.range(3).mapInPandas(lambda frames: frames, "id long").count() == 3
    assert spark_server.pid is not None
    process = psutil.Process(spark_server.pid)
    family = {process.pid, *(child.pid for child in process.children(recursive=True))}
    ports = {
        socket.laddr.port: socket.laddr.ip
        for socket in psutil.net_connections(kind="tcp")
        if socket.pid in family and socket.laddr and socket.status == psutil.CONN_LISTEN
    }
    assert {address.removeprefix("::ffff:") for address in ports.values()} == {"127.0.0.1"}
    # Java's are Connect, driver, block manager, and what streams need; what starts Python asks for a secret, too.
    assert sum(address.startswith("::ffff:") for address in ports.values()) >= 3
    assert spark.conf.get("spark.authenticate") == "true"


@pytest.mark.parametrize("token", [None, "guessed"])
def test_every_request_needs_the_token(spark_server: SparkServer, token: str | None) -> None:
    place = spark_server.url.removeprefix("sc://").partition("/")[0]
    metadata = [] if token is None else [("authorization", f"Bearer {token}")]
    service = base_pb2.DESCRIPTOR.services_by_name["SparkConnectService"]
    methods = [f"/{service.full_name}/{method.name}" for method in service.methods]
    assert {method.rpartition("/")[2] for method in methods} >= {"ExecutePlan", "AddArtifacts", "Config"}
    with grpc.insecure_channel(place) as channel:
        for method in methods:
            with pytest.raises(grpc.RpcError) as refused:
                list(channel.stream_stream(method)(iter([b""]), metadata=metadata, timeout=30))
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED, method


def test_the_token_is_in_no_process_that_others_see(spark_server: SparkServer) -> None:
    assert neighbour(PROCESSES, token="SparkConnectServer"), "the command line is visible"
    assert neighbour(PROCESSES, token=spark_server.url.partition("token=")[2]) == []


def test_the_servers_temporary_files_are_in_its_home(settings: Settings, spark_server: SparkServer, spark: Any) -> None:
    assert spark.range(1000).repartition(3).count() == 1000
    process = psutil.Process(spark_server.pid)
    used = {file.path for file in process.open_files()} | {part.path for part in process.memory_maps()}
    temporary = {path for path in used if Path(path).is_relative_to(tempfile.gettempdir())}
    # The checkout, with its Java, and the jars may be below the temporary folder themselves.
    places = (settings.home, settings.jars, ROOT)
    assert {path for path in temporary if not any(map(Path(path).is_relative_to, places))} == set()
    assert any(Path(path).is_relative_to(settings.home / "services" / "spark" / "scratch") for path in used)
    for folder, folders, _ in os.walk(settings.home / "services" / "spark" / "scratch"):
        assert not any(
            Path(folder, name).lstat().st_mode & 0o077 for name in folders if not Path(folder, name).is_symlink()
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_home_is_closed_whatever_the_umask(reachable: Path) -> None:
    before = os.umask(0)
    try:
        settings = config.load({"BLOGDATA_HOME": str(reachable / "home")})
        secrets.read(settings, "pseudonyms")
    finally:
        os.umask(before)
    home, secret = settings.home, settings.home / "secrets" / "pseudonyms"
    assert secret.stat().st_mode & 0o777 == 0o600
    tried = neighbour(LIST, home=str(home), paths=[str(secret)])
    assert tried == {"parent": True, "home": False, "reached": []}
    # The opposite: with an open home the same attempt succeeds.
    for folder in (home, secret.parent):
        folder.chmod(0o755)
    assert neighbour(LIST, home=str(home), paths=[str(secret)])["reached"]


def test_the_database_asks_everybody_for_a_password(postgres_server: str) -> None:
    port = postgres_server.rpartition(":")[2].partition("/")[0]
    for login in ("", "blogdata@", "postgres@", "blogdata:guessed@"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(f"postgresql://{login}127.0.0.1:{port}/postgres", connect_timeout=10)
    listening = [socket for socket in psutil.net_connections(kind="tcp") if socket.status == psutil.CONN_LISTEN]
    (owner,) = {socket.pid for socket in listening if socket.laddr and socket.laddr.port == int(port)}
    process = psutil.Process(owner)
    assert {socket.laddr for socket in process.net_connections(kind="unix")} <= {""}, "there is no other socket"
    assert {socket.laddr.ip for socket in process.net_connections(kind="tcp")} == {"127.0.0.1"}
