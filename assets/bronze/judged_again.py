"""Which published hours the lists of crawlers and the settings of today judge otherwise than those of their time.

Problem: a list is upgraded with its package. Published hours keep the verdicts of the old list. To compute all of them
again is work for nothing, and to compute none leaves crawlers among the page views.
How it works: every publication of bronze.visits has the versions of what judged its lines. Where these differ from the
installed ones, the lines are judged again and compared, once; the result is an event. Only hours with a line whose
verdict or category changes are offered.
The trap: comparing versions only. Nearly all hours have an older version, and few of them change.
When not to use it: for hours whose files have changed; they are stale, and are judged again anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from assets.transforms import crawlers
from assets.transforms.visit_lines import JSON
from blogdata.evidence.event import JUDGED_AGAIN, Event
from blogdata.landing.lines import read_again
from quality.contracts.requests import NO_REQUESTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from blogdata.evidence.events import EventLog
    from blogdata.lake.commit import Entry
    from blogdata.services.config import LogSettings

DATASET = "bronze.visits"
_VERDICT = ("reasons", "crawler", "filtered_by")
_PLACE = ("arrival_hour", "source_file", "source_offset")


def versions(logs: LogSettings) -> dict[str, str]:
    """Return the versions of what judges lines of access logs now, by name: the lists of crawlers, and the settings."""
    return {**crawlers.versions(), "settings": logs.filters_version}


def changed_hours(
    published: Mapping[str, Entry],
    events: EventLog,
    logs: LogSettings,
    session: Callable[[], AbstractContextManager[SparkSession]],
) -> list[str]:
    """Find the published hours of bronze.visits that would be judged otherwise now, in order.

    Hours that no other versions have judged cost nothing. The others are read and judged once.
    """
    had_logs = {key: entry for key, entry in published.items() if _has_requests(entry)}
    now = versions(logs) if had_logs else {}
    older = {key: entry for key, entry in had_logs.items() if entry.judged_by != now}
    if not older:
        return []
    changes = _known(events, older, now)
    unknown = older.keys() - changes.keys()
    if unknown:
        with session() as spark:
            counted = _changes(events.lake.read(spark, DATASET), unknown, logs)
        events.append([_event(older[key], now, counted.get(key, 0)) for key in sorted(unknown)])
        changes.update({key: counted.get(key, 0) for key in unknown})
    return sorted(key for key, rows in changes.items() if rows)


def _has_requests(entry: Entry) -> bool:
    return any(line_format not in NO_REQUESTS for _, _, line_format in entry.breakdowns["event_hours"])


def _known(events: EventLog, older: Mapping[str, Entry], now: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for note in events.notes(JUDGED_AGAIN, dataset=DATASET):
        key, payload = note.partition or "", note.payload or {}
        if key in older and payload["version"] == older[key].version and payload["judged_by"] == now:
            found[key] = int(payload["changes"])
    return found


def _event(entry: Entry, now: Mapping[str, str], changes: int) -> Event:
    payload = {"judged_by": dict(now), "version": entry.version, "changes": changes}
    return Event(kind=JUDGED_AGAIN, dataset=DATASET, partition=entry.partition, payload=payload)


def _changes(lines: DataFrame, hours: Collection[str], logs: LogSettings) -> dict[str, int]:
    """Count the lines of each hour whose verdict changes; hours without any are left out."""
    from pyspark.sql import functions as F

    from assets.transforms.received_lines import ReceivedLines
    from assets.transforms.request_lines import with_acting_crawlers

    # Tables of earlier releases have no categories.
    had = {name: F.col(name) if name in lines.columns else F.lit(None).cast("string") for name in _VERDICT}
    # Comments, too: later lines may depend on them.
    of_logs = lines.where(F.col("arrival_hour").isin(*hours) & (F.col("format") != JSON))
    before = of_logs.select("raw", *_PLACE, F.struct(*(had[name].alias(name) for name in _VERDICT)).alias("_before"))
    reader = ReceivedLines(logs)
    again = read_again(before, reader, reader.names, partition="arrival_hour")
    again = with_acting_crawlers(again, logs.crawlers)
    differs = ~F.struct(*_VERDICT).eqNullSafe(F.col("_before"))
    return {row[0]: int(row[1]) for row in again.where(differs).groupBy("arrival_hour").count().collect()}
