"""What came in: the formats of landed logs, and the dead letters and late visit events that did not come through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from blogdata.errors.remedies import Correct, Query, Remedy, Run
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Entry
from blogdata.lake.lake import Lake
from blogdata.report.data_part import LineFormat
from blogdata.report.elements import words_of
from blogdata.report.rejected_rows import DayOfArrival, RejectedReason, RejectedRows, Sample, shape_of
from quality.contracts import EVERY
from quality.contracts import columns as c
from quality.contracts.requests import NO_REQUESTS

LINES, DEAD_LETTERS, LATE = "bronze.visits", "bronze.dead_letters", "silver.late_visits"
SAMPLES = 1
"""Samples of a reason."""
_NEWEST = 24
"""Hours of arrival with dead letters from which samples are taken."""
_KEYS = frozenset(
    {column.name for column in (*c.VISIT, *c.CONTEXT, *c.IDENTITY)} | {"context", "technical", "user", "referral"}
)
"""JSON keys of visit events whose names a sample shows."""
_DAY = len("2026-01-31")
_PLACES = (
    "SELECT explode(reasons) AS reason, source_file, source_offset FROM bronze.dead_letters "
    "WHERE arrival_hour >= '{since}' ORDER BY reason LIMIT 20"
)


def rejected(lake: Lake, events: EventLog, *, days: int) -> RejectedRows:
    """Count the dead letters and late rows, and take samples.

    Args:
        lake: The tables' root.
        events: The event log.
        days: How many of the newest days of arrival are listed.
    """
    dead = {key: entry for key, entry in events.publications(DEAD_LETTERS).items() if entry.rows_out}
    hours = sorted(dead)[-_NEWEST:]
    remedy = (
        Remedy(
            "find them: ",
            Query(sql=_PLACES.format(since=hours[-1])),
            "; write what they should have been into a file, land it, and run: ",
            Correct(file="corrections.jsonl"),
            " && ",
            Run(),
        )
        if hours
        else Remedy()
    )
    return RejectedRows(
        reasons=sorted(_reasons(events), key=lambda one: (-one.rows, one.dataset, one.reason)),
        samples=list(_samples(lake, hours)),
        days=list(_days(events.publications(LINES), dead, events.publications(LATE)))[-days:],
        remedy=words_of(remedy),
    )


def formats(events: EventLog) -> list[LineFormat]:
    """Count the lines of access logs by the format that each was found to have, most lines first; comments are none."""
    lines: Counter[str] = Counter()
    days: dict[str, list[str]] = {}
    for hour, entry in sorted(events.publications(LINES).items()):
        for (_, _, name), count in entry.breakdowns.get("event_hours", {}).items():
            if name is not None and name not in NO_REQUESTS:
                lines[name] += count
                days.setdefault(name, []).append(hour[:_DAY])
    return [
        LineFormat(name=name, lines=count, first=days[name][0], last=days[name][-1])
        for name, count in sorted(lines.items(), key=lambda one: (-one[1], one[0]))
    ]


def _reasons(events: EventLog) -> Iterator[RejectedReason]:
    for dataset, contract in EVERY.items():
        if "reasons" not in contract.breakdowns:
            continue
        rows: Counter[str] = Counter()
        newest: dict[str, str] = {}
        for key, entry in sorted(events.publications(dataset).items()):
            for (reason,), count in entry.breakdowns.get("reasons", {}).items():
                if reason is not None:
                    rows[reason] += count
                    newest[reason] = key
        for reason, count in rows.items():
            yield RejectedReason(dataset=dataset, reason=reason, rows=count, newest=newest[reason])


def _samples(lake: Lake, hours: Sequence[str]) -> Iterator[Sample]:
    if not hours:
        return
    columns = ("arrival_hour", "source_file", "source_offset", "reasons", "raw")
    found = lake.columns(DEAD_LETTERS, columns, since=hours[0]).to_pylist()
    taken: Counter[str] = Counter()
    for row in sorted(found, key=lambda row: (row["arrival_hour"], row["source_file"], row["source_offset"]))[::-1]:
        if all(taken[reason] >= SAMPLES for reason in row["reasons"]):
            continue
        taken.update(row["reasons"])
        yield Sample(
            reasons=row["reasons"],
            partition=row["arrival_hour"],
            file=row["source_file"],
            offset=row["source_offset"],
            line=shape_of(row["raw"], keys=_KEYS),
        )


def _days(lines: Mapping[str, Entry], dead: Mapping[str, Entry], late: Mapping[str, Entry]) -> Iterator[DayOfArrival]:
    by_day: dict[str, list[str]] = {}
    for key in sorted(lines):
        by_day.setdefault(key[:_DAY], []).append(key)
    for day, keys in by_day.items():
        measured = [late[key].measures.get("max_lateness_seconds") for key in keys if key in late]
        known = [float(seconds) for seconds in measured if seconds is not None]
        yield DayOfArrival(
            day=day,
            rows=sum(lines[key].rows_out for key in keys),
            dead=sum(dead[key].rows_out for key in keys if key in dead),
            late=sum(late[key].rows_out for key in keys if key in late),
            latest_seconds=max(known, default=None),
        )
