"""Spark's configuration, the same for the server and for a cluster's driver."""

from __future__ import annotations

import os
import re
from pathlib import Path

from blogdata.services import engine, jars
from blogdata.services.config import Settings

TABLE_FILES = {
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Form of table files: zstd takes two thirds of snappy's bytes in the same time; Spark's older form of moments has no
statistics."""
SERVICE = "spark"
_PLUGIN = "io.blogdata.engine.NoServedFiles"
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")


def build(settings: Settings) -> dict[str, str]:
    """Build the configuration of a Spark driver; jars that are missing are fetched and compiled.

    Other users of the machine can connect to its ports, too. On a local master Spark makes a secret for these, which
    never leaves the process; a cluster has one of its own (`spark.authenticate.secret`).
    """
    pinned = jars.download_missing(settings)
    class_path = os.pathsep.join(map(str, [*pinned.files("spark"), engine.compile_if_absent(pinned)]))
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
    if is_local(settings):
        conf["spark.authenticate"] = "true"
    found = {**conf, **dict(settings.spark.conf)}
    found["spark.plugins"] = ",".join(filter(None, [_PLUGIN, found.get("spark.plugins")]))
    return found


def is_local(settings: Settings) -> bool:
    """Return whether the driver executes all tasks itself, so that nothing else has to connect to its RPC ports."""
    return _LOCAL.fullmatch(settings.spark.master) is not None


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

    By default it takes all that is free, and neither a sort that still receives rows nor a window that is being read
    gives anything back: the next window of the same task then fails (UNABLE_TO_ACQUIRE_MEMORY), whatever the heap, for
    instance when the page views of one busy visitor are cut into sessions.
    """
    local = _LOCAL.fullmatch(settings.spark.master)
    if local is None:
        return 16 * _MIB  # Fits executors of Spark's default size, which are not this configuration's.
    tasks = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    # Spark's share of the heap; a task may have several sorts and windows, and rows that are kept take up to half.
    return max(_MIB, int((settings.spark.heap_bytes - 300 * _MIB) * 0.6) // tasks // 8)


_MIB = 1 << 20
_TEMPORARY = "tmp"
