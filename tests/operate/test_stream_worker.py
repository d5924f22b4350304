"""The worker of a stream connects to the Spark server before it imports slow modules."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from dataclasses import replace
from io import BufferedRWPair
from pathlib import Path

import pytest

from blogdata.operate import spark_launch
from blogdata.operate.config import Settings

PROGRAM = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"
SECRET = "a secret of the server"
PYTHON_EXCEPTION_THROWN = -2


@pytest.fixture
def python(settings: Settings, tmp_path: Path) -> str:
    """The executable that Spark starts as Python."""
    return str(spark_launch.worker_python(replace(settings, home=tmp_path / "a home")))


def read(stream: BufferedRWPair) -> bytes:
    (length,) = struct.unpack("!i", stream.read(4))
    return stream.read(length)


def send(stream: BufferedRWPair, text: str) -> None:
    stream.write(struct.pack("!i", len(text)) + text.encode())
    stream.flush()


def test_a_streams_worker_connects_before_it_imports_pyspark(python: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0)) as listening, log.open("wb") as output:
        listening.settimeout(120)
        port = str(listening.getsockname()[1])
        # As Spark starts it; its log has a line for each module that it imports.
        environment = {"PYTHON_WORKER_FACTORY_PORT": port, "PYTHON_WORKER_FACTORY_SECRET": SECRET}
        environment |= {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
        with subprocess.Popen([python, "-m", PROGRAM], env=environment, stderr=output) as worker:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                assert read(stream) == SECRET.encode()
                assert b"pyspark" not in log.read_bytes()
                send(stream, "ok")
                assert struct.unpack("!i", stream.read(4)) == (worker.pid,)
                # PySpark's own program fails at its start: this version of Python is not supported.
                send(stream, "2.7")
                assert struct.unpack("!i", stream.read(4)) == (PYTHON_EXCEPTION_THROWN,)
                assert b"PYTHON_VERSION_MISMATCH" in read(stream)
            worker.kill()
    assert b"pyspark" in log.read_bytes()
