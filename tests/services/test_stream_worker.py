"""The worker of a stream connects to the Spark server before it imports slow modules."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedRWPair
from pathlib import Path

import pytest

from blogdata.services import spark_launch
from blogdata.services.config import Settings

PROGRAM = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"
SECRET = "a secret of the server"
PYTHON_EXCEPTION_THROWN = -2


@pytest.fixture
def python(settings: Settings, tmp_path: Path) -> str:
    """The executable that Spark starts as Python."""
    return str(spark_launch.worker_python(replace(settings, home=tmp_path / "a home")))


@contextmanager
def started(python: str, listening: socket.socket, log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker as Spark does; its log has a line for each module it imports."""
    port = str(listening.getsockname()[1])
    environment = {**os.environ, "PYTHON_WORKER_FACTORY_PORT": port, "PYTHONPROFILEIMPORTTIME": "1", **more}
    listening.settimeout(120)
    listening.listen(1)
    with log.open("wb") as output:
        worker = subprocess.Popen([python, "-m", PROGRAM], env=environment, stderr=output)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def read(stream: BufferedRWPair) -> bytes:
    (length,) = struct.unpack("!i", stream.read(4))
    return stream.read(length)


def send(stream: BufferedRWPair, text: str) -> None:
    stream.write(struct.pack("!i", len(text)) + text.encode())
    stream.flush()


def imported(log: Path) -> str:
    return log.read_text(encoding="utf-8")


def refused_version(stream: BufferedRWPair) -> str:
    """Make PySpark's own program fail at its start, with an unsupported Python version."""
    send(stream, "2.7")
    assert struct.unpack("!i", stream.read(4)) == (PYTHON_EXCEPTION_THROWN,)
    return read(stream).decode()


def test_a_streams_worker_connects_before_it_imports_pyspark(python: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        with started(python, listening, log, PYTHON_WORKER_FACTORY_SECRET=SECRET) as worker:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                assert read(stream) == SECRET.encode()
                assert "pyspark" not in imported(log)
                send(stream, "ok")
                assert struct.unpack("!i", stream.read(4)) == (worker.pid,)
                assert "PYTHON_VERSION_MISMATCH" in refused_version(stream)
    assert "pyspark" in imported(log)


def test_a_rejected_secret_ends_the_worker(python: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        with started(python, listening, log, PYTHON_WORKER_FACTORY_SECRET=SECRET) as worker:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                read(stream)
                send(stream, "err")
                assert worker.wait(120) == 1
    assert "did not accept the secret" in imported(log)


def test_other_workers_are_forks_of_a_process_that_has_imported_what_they_need(python: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    program = [python, "-m", "pyspark.daemon", "pyspark.worker"]
    with log.open("wb") as output:
        daemon = subprocess.Popen(
            program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output
        )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    with daemon:
        assert 0 < struct.unpack("!i", daemon.stdout.read(4))[0] < 65536
        assert {"pandas", "pyarrow", "blogdata.landing.lines"} <= {*imported(log).split()}
        daemon.stdin.close()
        daemon.wait(120)


def test_a_stream_worker_imports_no_heavy_modules() -> None:
    program = "import sys, assets.streams.live_sessions, assets.streams.live_visits; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"dagster", "great_expectations", "definitions", "blogdata.orchestration.streamed_dataset"}.isdisjoint(
        done.stdout.split()
    )
