"""Starts the Python process of a stream: connects to the Spark server first, and imports PySpark then.

Problem: a Spark Connect server runs `foreachBatch` in a Python process, and gives that process ten seconds to connect;
no setting changes this. PySpark's own program imports itself, pandas, pyarrow and gRPC before it connects, about
2.4 seconds of a core. On a machine with more to do than its cores can, ten seconds pass meanwhile, and the query
is not started: "Python worker failed to connect back".

How it works: `spark_launch` has Spark start this module in place of PySpark's program. It needs a few hundredths of
a second to connect, and then calls the program's own `main` on the connection. After the connection Spark waits as
long as it takes.

The trap: the greeting is PySpark's own protocol (`pyspark.util.local_connect_and_auth`), to be compared when PySpark's
version changes. Nothing but the standard library may be imported before the connection is there.

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
    """Connect to the server that has started this process, and run PySpark's program on the connection.

    Args:
        program: Module of PySpark with a `main(infile, outfile)`.
    """
    with connected() as connection, connection.makefile("rwb") as stream:
        greet(stream)
        importlib.import_module(program).main(stream, stream)


def connected() -> socket.socket:
    """Open the connection that the server waits for, as its environment variables say."""
    path = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH")
    if path is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(path)
        return connection
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true" else "127.0.0.1"
    return socket.create_connection((host, int(os.environ["PYTHON_WORKER_FACTORY_PORT"])))


def greet(stream: BufferedRWPair) -> None:
    """Send the server the secret it has given this process (none on a Unix domain socket), and the process's number.

    Args:
        stream: The connection.

    Raises:
        SystemExit: The server does not accept the secret.
    """
    secret = os.environ.get("PYTHON_WORKER_FACTORY_SECRET")
    if secret is not None:
        stream.write(struct.pack("!i", len(secret.encode())) + secret.encode())
        stream.flush()
        (length,) = struct.unpack("!i", stream.read(4))
        answer = stream.read(length)
        if answer != b"ok":
            sys.exit(f"the Spark server did not accept the secret of this process: {answer!r}")
    stream.write(struct.pack("!i", os.getpid()))
    stream.flush()


if __name__ == "__main__":
    main(sys.argv[1])
