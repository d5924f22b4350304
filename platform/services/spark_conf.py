"""Spark's configuration: one for the server, for a classic session and for a cluster's driver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from services import engine, jars, java
from services.config import Settings

TABLE_FILES = {"spark.sql.parquet.compression.codec": "zstd"}
"""How files of tables are written: in two thirds of the bytes that snappy takes, in the same time."""


@dataclass(frozen=True, kw_only=True)
class SparkParts:
    """What a Spark needs to be there before it starts.

    Args:
        java: The Java it runs on.
        java_home: The `JAVA_HOME` for Spark's launch scripts.
        class_path: Jars beyond Spark's own.
    """

    java: java.Java
    java_home: Path
    class_path: tuple[Path, ...]


def prepare(settings: Settings) -> SparkParts:
    """Have everything a Spark needs.

    Args:
        settings: Of the deployment.

    Returns:
        The parts, all in place.

    Raises:
        JavaMissing: There is no Java.
        JarsUnavailable: The jars could not be fetched.
        JarCorrupt: A jar is not what is pinned.
        EngineBuildFailed: The platform's Java sources do not compile.
    """
    runtime = java.find(settings)
    pinned = jars.ensure(settings, runtime)
    built = [engine.ensure(pinned, runtime)] if settings.spark.writes == "transaction" else []
    return SparkParts(
        java=runtime,
        java_home=java.launcher_home(runtime, settings.service_folder("spark")),
        class_path=(*pinned.files("spark"), *built),
    )


def build(settings: Settings, parts: SparkParts) -> dict[str, str]:
    """Build the configuration of a Spark driver.

    Tables here are small by Spark's standards, so it is kept from cutting work into hundreds of tasks.

    Args:
        settings: Of the deployment; `spark.conf` there is laid over everything here.
        parts: The jars.

    Returns:
        Keys and values.
    """
    class_path = os.pathsep.join(map(str, parts.class_path))
    conf = {
        "spark.app.name": "blogdata",
        "spark.master": settings.spark.master,
        "spark.driver.memory": settings.spark.heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": class_path,
        "spark.executor.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.warehouse.dir": str(settings.lake / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        **TABLE_FILES,
        "spark.sql.shuffle.partitions": "4",
        # Of 100 entries, as by default, a server that writes a few tables keeps none until it is needed again: it
        # spends two fifths of its time on compiling the same code anew.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
    }
    return {**conf, **dict(settings.spark.conf)}
