"""Starts the Python process of a stream: connects to the Spark server first, then imports PySpark.

Problem: a Spark Connect server runs `foreachBatch` in a Python process, which must connect within ten seconds; no
setting changes this. PySpark's own program imports PySpark, pandas, pyarrow and gRPC before it connects, which takes
about 2.4 seconds of CPU time. On an overloaded machine this takes longer than ten seconds, and the query does not
start: "Python worker failed to connect back".
How it works: `spark_launch` makes Spark start this module instead of PySpark's program. It connects within a few
hundredths of a second, and then calls the program's own `main` on the connection. Once connected, Spark waits without
a limit.
The trap: the handshake is PySpark's own protocol (`pyspark.util.local_connect_and_auth`), to be compared when PySpark's
version changes. Only the standard library may be imported before the connection is open.
Source: Spark 4.2, `PythonWorkerFactory.createSimpleWorker` and `pyspark.worker_util.get_sock_file_to_executor`.
"""

from __future__ import annotations

import importlib
import os
import socket
import struct
import sys
from io import BufferedRWPair


def main(program: str) -> None:
    with connected() as connection, connection.makefile("rwb") as stream:
        greet(stream)
        importlib.import_module(program).main(stream, stream)


def connected() -> socket.socket:
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true" else "127.0.0.1"
    return socket.create_connection((host, int(os.environ["PYTHON_WORKER_FACTORY_PORT"])))


def greet(stream: BufferedRWPair) -> None:
    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    stream.write(struct.pack("!i", len(secret)) + secret)
    stream.flush()
    (length,) = struct.unpack("!i", stream.read(4))
    answer = stream.read(length)
    if answer != b"ok":
        sys.exit(f"the Spark server did not accept the secret of this process: {answer!r}")
    stream.write(struct.pack("!i", os.getpid()))
    stream.flush()


if __name__ == "__main__":
    main(sys.argv[1])
