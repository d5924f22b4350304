"""Transient errors of streams are recognized."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkException

from blogdata.errors import TransientError
from blogdata.stream import stream as streams

LATE = """Python worker failed to connect back.

JVM stacktrace:
org.apache.spark.SparkException
\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker(PythonWorkerFactory.scala:303)
\tat org.apache.spark.api.python.StreamingPythonRunner.init(StreamingPythonRunner.scala:80)
\tat org.apache.spark.sql.connect.planner.StreamingForeachBatchHelper$.pythonForeachBatchWrapper(
"""
"""As Spark Connect 4.2 gave it on a machine with sixteen busy processes on two cores."""


def test_a_late_stream_worker_is_a_transient_fault() -> None:
    with pytest.raises(TransientError, match="'visits' ended"), streams.unpacked("visits"):
        raise SparkException(LATE)


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(PySparkException, match="another") as caught, streams.unpacked("visits"):
        raise SparkException("another error")
    assert type(caught.value) is SparkException
