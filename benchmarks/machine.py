"""The machine and versions of a measurement, without which the figures mean nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

from blogdata.services import java
from blogdata.services.config import Settings

PACKAGES = ("pyspark", "delta-spark", "dagster", "dagster-pyspark", "deltalake", "duckdb", "pyarrow")


def describe(settings: Settings) -> dict[str, str]:
    """Describe machine and versions.

    Args:
        settings: Settings of the measured deployment.
    """
    runtime = java.find(settings)
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB, Spark's heap {settings.spark.heap}",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": f"{runtime.version} ({runtime.source})",
        **{name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
