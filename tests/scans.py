"""What a query reads, by the metrics of its executed plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What all scans of a plan opened.

    Args:
        files: Number of files; one that two scans opened counts twice.
        bytes: Their size in bytes.
        shuffled: Bytes that its exchanges wrote.
    """

    files: int
    bytes: int
    shuffled: int = field(default=0, compare=False)


def scanned(frame: DataFrame) -> Scan:
    """Collect a frame, and return what its executed plan says it has read."""
    frame.collect()
    asked: Any = frame
    nodes = asked.executionInfo.metrics.extract_graph()[1].values()
    scans = [{metric.name: int(metric.value) for metric in node.metrics} for node in nodes]
    return Scan(
        files=sum(scan.get("numFiles", 0) for scan in scans),
        bytes=sum(scan.get("filesSize", 0) for scan in scans),
        shuffled=sum(scan.get("shuffleBytesWritten", 0) for scan in scans),
    )
