"""The expected rows of the ad datasets, in plain Python from the landed files."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lineage import brute_force
from lineage.brute_force import Lines

Row = tuple[Any, ...]
Rule = tuple[str, tuple[tuple[str, ...], Callable[[Path, Lines], Any]]]
"""A dataset, the columns that tell its rows apart, and what these must be."""
HOURS = "hours_present"
Group = tuple[str, str]


def _bronze_ads(landing: Path, lines: Lines) -> Iterator[Row]:
    return ((line.arrival_hour, *line.place, line.raw) for line in brute_force.read(landing, "ads").all)


def _ad_dead_letters(landing: Path, lines: Lines) -> Iterator[Row]:
    return ((*line.place, line.raw, brute_force.reasons(line)) for line in brute_force.read(landing, "ads").dead)


def _silver_ads(landing: Path, lines: Lines) -> Iterator[Row]:
    ads = brute_force.read(landing, "ads")
    for identity, line in ads.winners.items():
        yield line.event_hour, *line.place, line.raw, 1 + len(ads.losers.get(identity, ()))


def _ad_conflicts(landing: Path, lines: Lines) -> Iterator[Row]:
    return ((*line.place, line.raw) for line in brute_force.read(landing, "ads").conflicts)


def _with_ads(landing: Path, lines: Lines) -> Iterator[Row]:
    for pair in brute_force.pairs(lines, brute_force.read(landing, "ads")):
        one = pair.event or pair.display or {}
        page, campaign = (pair.event or {}).get("page"), (pair.display or {}).get("campaign")
        yield pair.hour, pair.side, one["visit_id"], pair.event_time, page, pair.display_time, campaign


def _campaigns(landing: Path, lines: Lines) -> Iterator[Row]:
    """Count the sides of pairs, the displays, and the distinct values, by day and campaign."""
    ads = brute_force.read(landing, "ads")
    there = {*brute_force.delivered(landing)} & {*brute_force.delivered(landing, "ads")}
    hours = Counter(brute_force.day(brute_force.hour(hour)) for hour in there)
    counts: dict[Group, Counter[str]] = defaultdict(Counter)
    distinct: dict[Group, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for pair in brute_force.pairs(lines, ads):
        group = pair.hour[: len("2026-01-05")], (pair.display or {}).get("campaign") or "unknown"
        counts[group][pair.side] += 1
        if pair.side == "both" and pair.event is not None:
            identity = (pair.event["visit_id"], pair.event_time, pair.event["page"])
            for name, value in zip(
                ("events", "visits", "visitors"), (identity, identity[0], pair.event["user_id"]), strict=True
            ):
                distinct[group][name].add(value)
    for line in ads.winners.values():
        assert line.verdict.time is not None
        counts[brute_force.day(line.verdict.time), json.loads(line.raw)["campaign"] or "unknown"]["displays"] += 1
    for group, found in counts.items():
        sizes = (len(distinct[group][name]) for name in ("events", "visits", "visitors"))
        plain = (found[name] for name in ("displays", "display", "event", "both"))
        yield *group, *plain, *sizes, hours[group[0]]


RULES: list[Rule] = [
    ("bronze.ads", (("arrival_hour", "source_file", "source_offset", "raw"), _bronze_ads)),
    ("bronze.ad_dead_letters", (("source_file", "source_offset", "raw", "reasons"), _ad_dead_letters)),
    ("silver.ads", (("display_hour", "source_file", "source_offset", "raw", "occurrences"), _silver_ads)),
    ("silver.ad_conflicts", (("source_file", "source_offset", "raw"), _ad_conflicts)),
    (
        "silver.visits_with_ads",
        (("event_hour", "side", "visit_id", "event_time", "page", "display_time", "campaign"), _with_ads),
    ),
    (
        "gold.campaign_stats",
        (
            (
                *("event_date", "campaign", "displays", "displays_alone", "events_alone", "pairs"),
                *("events", "visits", "visitors", HOURS),
            ),
            _campaigns,
        ),
    ),
]
