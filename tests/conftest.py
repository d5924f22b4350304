"""Shared fixtures: one Spark Connect server for the whole session, in a home of its own.

The tests may run in several processes at once (`-n 2`); they share one server, started by the first that needs it.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import psycopg
import pytest
from alembic.script import ScriptDirectory

import plans
import spark_cluster
from blogdata.operate import config, postgres, spark_attached, spark_connect
from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer
from laws.stepping import Probe

ROOT = Path(__file__).parent.parent
WHOLE = "WHOLE_MATRIX"
"""Set, campaigns and every case of every matrix are tried; otherwise a part of them, the same one each time."""
WORKERS = "BLOGDATA_TEST_WORKERS"
"""Set to a number, the tests run on a standalone cluster of so many workers."""


def pytest_configure() -> None:
    # A shell that starts the tests in the background has them ignore interrupts. Dagster then ignores termination
    # requests, too, and so do the processes that copy its logs: it would wait for them in vain.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Dagster loads its migrations, ninety modules, twice for each run's file of events.
    ScriptDirectory.from_config = functools.cache(ScriptDirectory.from_config)  # type: ignore[method-assign]
    # Modules and collected tests live as long as the process.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the services after the last process is done."""
    if hasattr(session.config, "workerinput"):
        return
    folders: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    used = _settings(folders)
    if used.home.is_dir():
        spark_connect.stop(used)
        postgres.stop(used)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if WHOLE not in os.environ:
        _sample(config, items)
    # Each process takes whole files, in this order. Files with servers are long; short files come last, or one process
    # waits for the other.
    long = {item.path for item in items if "settings" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path not in long)


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect campaigns and most matrix cases (any pair of something), chosen by a hash of their names."""
    tried: set[str] = set()
    kept, left = [], []
    for item in items:
        marker = item.get_closest_marker("matrix")
        name = item.nodeid.partition("[")[0]
        # Keep at least one case of each test.
        left_out = marker is not None and name in tried and crc32(item.nodeid.encode()) % marker.args[0] != 0
        if not left_out and item.get_closest_marker("campaign") is None:
            kept.append(item)
        else:
            left.append(item)
        tried.add(name)
    items[:] = kept
    if left:
        config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the tests' own deployment; of the user's deployment only the jars are used."""
    loaded = _settings(tmp_path_factory)
    loaded.home.mkdir(exist_ok=True)
    return loaded


def _settings(folders: pytest.TempPathFactory) -> Settings:
    users = ("BLOGDATA_", "SPARK_", "DAGSTER_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(users) or name in _KEPT}
    # With several test processes, each has a subfolder of the main process's folder.
    root = folders.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else folders.getbasetemp()
    loaded = config.load({**environ, "BLOGDATA_HOME": str(root / "home"), "BLOGDATA_SPARK_HEAP": "5g"})
    conf = {**plans.FOR_FEW_ROWS, **plans.COMPILED_ONCE, **plans.counted(loaded.home)}
    return replace(loaded, spark=replace(loaded.spark, conf=tuple(conf.items())))


_KEPT = ("BLOGDATA_JARS", "BLOGDATA_MAVEN_MIRROR")


@pytest.fixture(scope="session")
def spark_server(settings: Settings) -> Iterator[SparkServer]:
    """The Spark Connect server of all tests that only use one; tests that break servers start their own."""
    workers = int(os.environ.get(WORKERS, "0"))
    with spark_cluster.running(settings, workers) if workers else nullcontext(settings) as chosen:
        yield spark_connect.running_server(chosen)


@pytest.fixture(scope="session")
def spark(spark_server: SparkServer) -> Iterator[Any]:
    session = spark_attached.attach(spark_server.url)
    yield session
    spark_attached.release(session)


@pytest.fixture
def usual_plans(spark: Any) -> Iterator[None]:
    """Use the production plan settings, for tests that look at plans."""
    plans.configure(spark, plans.AS_IN_PRODUCTION)
    yield
    plans.configure(spark, plans.FOR_FEW_ROWS)


@pytest.fixture
def session(spark_server: SparkServer) -> Iterator[Any]:
    """A separate session, for tests of its settings or of a session that is not the default."""
    separate = spark_attached.attach(spark_server.url)
    yield separate
    spark_attached.release(separate)


@pytest.fixture
def lake_root(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    root.mkdir()
    return root


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    """A probe that holds or ends a write; remaining held writes continue at its end."""
    made = Probe(tmp_path / "probe")
    yield made
    made.release()


@pytest.fixture(scope="session")
def postgres_server(settings: Settings) -> str:
    """The address of the shared PostgreSQL server, for tests that only use it."""
    return postgres.up(settings)


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    """The address of an empty database for one test."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("only root may mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
