"""Splits the landed logs one after the other, the oldest first: :mod:`.log_splitter` splits one.

Part of the Passthrough Replicator, whose card explains the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from blogdata.errors import PlatformError
from blogdata.patterns.ingestion.landed_formats import DAMAGED
from blogdata.patterns.ingestion.log_splitter import HourOf, SplitReport, first_hour, split_by_hour, unsplit_logs
from blogdata.publish.partitions import Grain, key_of


@dataclass(frozen=True, kw_only=True)
class SplitLog:
    """What became of one log in :func:`split_all`.

    Args:
        report: What was taken from it; None if it could not be split.
    """

    log: Path
    report: SplitReport | None = None
    fault: PlatformError | None = None


def split_all(landing: Path, hour_of: HourOf, *, now: datetime) -> Iterator[SplitLog]:
    """Split the logs that are new or have changed, the oldest first; one that cannot be split stops no other.

    Args:
        hour_of: As in :func:`split_by_hour`.
    """
    logs = oldest_first(unsplit_logs(landing), hour_of, now=now)
    for at, log in enumerate(logs, start=1 - len(logs)):
        # Lines are ordered by the time at which they were taken: within one call, too, by that of their log.
        taken_at = now + timedelta(seconds=at)
        try:
            yield SplitLog(log=log, report=split_by_hour(log, landing, hour_of, now=now, taken_at=taken_at))
        except PlatformError as error:
            yield SplitLog(log=log, fault=error)


def oldest_first(logs: Iterable[Path], hour_of: HourOf, *, now: datetime) -> list[Path]:
    """Sort logs by the hour of their first readable line, those of one hour by when they were last written to.

    Args:
        hour_of: As in :func:`split_by_hour`.
    """
    newest = key_of(now, Grain.HOUR)

    def age(log: Path) -> tuple[str, int, str]:
        try:
            return first_hour(log, hour_of, newest) or "", log.stat().st_mtime_ns, log.name
        except (PlatformError, *DAMAGED):
            # Whoever reads it meets the same error, and reports it.
            return "", 0, log.name

    return sorted(logs, key=age)
