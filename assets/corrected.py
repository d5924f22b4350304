"""Partitions that corrected dead letters make stale, downstream included, computed before any of them runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from evidence.events import EventLog
from patterns.error_management.dead_letter_replay import Correction
from patterns.ingestion.combined_log import hour_of_combined
from patterns.ingestion.readiness_marker import LandingZone
from planning.look import Snapshot
from planning.plan import STALE, Planner
from publish.partitions import Grain, following, key_of
from quality.contracts import GRAPH

_ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::\d\d(?:[.,]\d+)?)?(?:Z|([+-]\d\d)(?::?(\d\d))?)")


def stale_after(
    corrections: Sequence[Correction], landing: Path | LandingZone, events: EventLog
) -> dict[str, list[str]]:
    """Find the partitions that landed corrections make stale, from bronze to gold.

    Args:
        corrections: The landed corrections.
        landing: The landing zone.
        events: The event log.

    Returns:
        Dataset to its stale partitions; empty if all hours of the corrections are published as landed. A correction
        that will be rejected again still counts in its event hour. A watermark change shows only after the hours ran.
    """
    planner = Planner(graph=GRAPH, look=Snapshot(landing, events))
    behind = planner.stale(GRAPH.task_of("bronze.visits"))
    waiting = [correction for correction in corrections if correction.arrival_hour in behind]
    hours = {correction.arrival_hour for correction in waiting}
    touched = {hour for correction in waiting if (hour := event_hour(correction)) is not None}
    asked = {"bronze.visits": dict.fromkeys(hours, STALE), "silver.visits": dict.fromkeys(touched, STALE)}
    found: dict[str, set[str]] = {}
    for run in planner.plan_of_replay(asked).runs:
        for dataset in run.datasets:
            found.setdefault(dataset, set()).update(run.keys)
    return {dataset: sorted(keys) for dataset, keys in found.items()}


def event_hour(correction: Correction) -> str | None:
    """Read the event hour of a corrected visit from its payload; None if the payload has no plausible time."""
    is_log = correction.source_file.removesuffix(".gz").endswith(".log")
    hour = hour_of_combined(correction.payload.encode()) if is_log else _hour_of_event(correction.payload)
    # The producer's clock may run slightly ahead, into the hour after arrival.
    latest = following(correction.arrival_hour, Grain.HOUR)
    return hour if hour is not None and "2000" <= hour <= latest else None


def _hour_of_event(payload: str) -> str | None:
    try:
        found = _ISO_TIME.fullmatch(json.loads(payload)["event_time"])
        if found is None:
            return None
        minute, hours, minutes = found.groups()
        zone = f"{hours}{minutes or '00'}" if hours else "+0000"
        return key_of(datetime.strptime(f"{minute}{zone}", "%Y-%m-%dT%H:%M%z"), Grain.HOUR)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
