"""Spark's plan settings in tests: for few rows, unless a test looks at plans or computes a whole day."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOR_FEW_ROWS = {
    # Generating and compiling the code of expressions took a third of the server's time; make laws does it.
    "spark.sql.codegen.factoryMode": "FALLBACK" if "WHOLE_MATRIX" in os.environ else "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings of the tests' server: for few rows, a plan's time goes into its code, and into tasks without rows."""
COMPILED_ONCE = {"spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1"}
"""Option of the tests' server: in the minutes that it lives, a third of its time would go into compiling code again."""
ADAPTIVE = {"spark.sql.adaptive.enabled": None, "spark.sql.shuffle.partitions": "4"}
AS_IN_PRODUCTION = {"spark.sql.codegen.factoryMode": None, "spark.sql.codegen.wholeStage": "true", **ADAPTIVE}
"""None is Spark's own default: what somebody has set, the engine does not change for few rows."""


def jobs_folder(home: Path) -> Path:
    return home / "jobs"


def counted(home: Path) -> dict[str, str]:
    """Return settings of a server that logs its jobs; always two cores, as the number of jobs depends on them."""
    jobs_folder(home).mkdir(parents=True, exist_ok=True)
    log = {"enabled": "true", "dir": jobs_folder(home).as_uri(), "compress": "false", "rolling.enabled": "false"}
    # Of each job and stage; plans and tasks would be most of it.
    log["excludedPatterns"] = "org.apache.spark.sql,SparkListenerTask,SparkListenerStageSubmitted"
    return {**{f"spark.eventLog.{name}": value for name, value in log.items()}, "spark.master": "local[2]"}


def plan_of(frame: Any) -> str:
    """Return the physical plan of a frame, as `explain` prints it."""
    return str(frame._explain_string("simple"))


def configure(spark: Any, settings: Mapping[str, str | None]) -> None:
    """Set up a session for one of these ways of planning."""
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
