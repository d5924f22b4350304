"""Partitions that corrected dead letters make stale, downstream included, computed before any of them runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from blogdata.evidence.events import EventLog
from blogdata.landing.landed_formats import extension
from blogdata.landing.log_formats import LogFormats
from blogdata.patterns.error_management.dead_letter_replay import Correction, ReplayRefused
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning.plan import STALE, Planner
from blogdata.planning.reach import EventsOf, landed_input
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, following, key_of
from quality.contracts import CONTRACTS, GRAPH

_ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::\d\d(?:[.,]\d+)?)?(?:Z|([+-]\d\d)(?::?(\d\d))?)")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The datasets of a landed table whose lines are judged."""

    table: str
    received: Contract
    letters: Contract
    events: Contract
    time: str


def judged_tables() -> dict[str, Judged]:
    """Find the landed tables whose dead letters can be corrected, by folder."""
    found = {}
    for contract in CONTRACTS.values():
        letters = contract.runs.judged_by
        source = next((read.dataset for read in contract.reads if isinstance(read.reach, EventsOf)), None)
        landed = landed_input(CONTRACTS[source]) if source else None
        flow = contract.watch.flow
        if letters and source and landed and flow and flow.event_time:
            found[landed.table] = Judged(
                table=landed.table,
                received=CONTRACTS[source],
                letters=CONTRACTS[letters],
                events=contract,
                time=flow.event_time,
            )
    return found


def of_one_table(corrections: Sequence[Correction]) -> Judged:
    """Find the table whose lines are corrected; corrections of several tables are refused."""
    tables = judged_tables()
    named = sorted({correction.table for correction in corrections})
    unknown = [name for name in named if name not in tables]
    if unknown:
        raise ReplayRefused(
            what=f"lines of {unknown[0]} are not corrected one by one",
            where="source_file",
            next_step=f"correct lines of {' or '.join(tables)}; of other tables, land the delivery again",
        )
    if len(named) > 1:
        raise ReplayRefused(
            what=f"the corrections are of {' and '.join(named)}",
            where="source_file",
            next_step="write those of each into a file of their own",
        )
    return tables[named[0]] if named else next(iter(tables.values()))


def stale_after(
    corrections: Sequence[Correction],
    judged: Judged,
    landing: Path | LandingZone,
    events: EventLog,
    formats: LogFormats,
) -> dict[str, list[str]]:
    """Map each dataset to its partitions that landed corrections make stale; empty if all are published as landed.

    A correction that will be rejected again still counts in its event hour. A watermark change shows only after the
    hours ran.
    """
    planner = Planner(graph=GRAPH, look=Snapshot(landing, events))
    received, integrated = judged.received.dataset, judged.events.dataset
    behind = planner.stale(GRAPH.task_of(received))
    waiting = [correction for correction in corrections if correction.arrival_hour in behind]
    hours = {correction.arrival_hour for correction in waiting}
    touched = {hour for correction in waiting if (hour := event_hour(correction, judged.time, formats)) is not None}
    asked = {received: dict.fromkeys(hours, STALE), integrated: dict.fromkeys(touched, STALE)}
    found: dict[str, set[str]] = {}
    for run in planner.plan_of_replay(asked).runs:
        for dataset in run.datasets:
            found.setdefault(dataset, set()).update(run.keys)
    return {dataset: sorted(keys) for dataset, keys in found.items()}


def event_hour(correction: Correction, time: str, formats: LogFormats) -> str | None:
    """Read the event hour of a corrected line from its payload; None if the payload has no plausible time."""
    is_log = extension(correction.source_file) == "log"
    payload = correction.payload
    hour = formats.hour_of(payload.encode()) if is_log else _hour_of_event(payload, time)
    # The producer's clock may run slightly ahead, into the hour after arrival.
    latest = following(correction.arrival_hour, Grain.HOUR)
    return hour if hour is not None and "2000" <= hour <= latest else None


def _hour_of_event(payload: str, time: str) -> str | None:
    try:
        found = _ISO_TIME.fullmatch(json.loads(payload)[time])
        if found is None:
            return None
        minute, hours, minutes = found.groups()
        zone = f"{hours}{minutes or '00'}" if hours else "+0000"
        return key_of(datetime.strptime(f"{minute}{zone}", "%Y-%m-%dT%H:%M%z"), Grain.HOUR)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
