"""What datasets by hour of the event have in common: which hours of arrival they read, and which of them wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.visit_lines import ReceivedLines
from blogdata.lake.commit import Entry
from blogdata.landing.lines import completed
from blogdata.landing.log_formats import COMMENT
from blogdata.orchestration.step import Step
from blogdata.planning.graph import Graph
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import DEAD_LETTERS, held
from blogdata.publish.partitions import Grain, key_of, start_of
from quality.contracts import CONTRACTS
from quality.contracts.requests import NO_REQUESTS
from quality.contracts.visits import FOUND, READ

DEAD_LETTERED = "dead_lettered"
"""Reason of lines that an older release took in, and that are rejected today."""
ARRIVAL_ORDER = ("arrival_hour", "_replay", "source_file", "source_offset")
"""A correction lies in the hour of the line it corrects, but arrived later: `_replay` sorts it last in its hour."""


def require_usable(step: Step) -> None:
    """Refuse hours for which mostly dead letters arrived, unless a person has accepted that."""
    if DEAD_LETTERS in step.accepted:
        return
    waiting = held(Snapshot(step.landing_zone, step.events), Graph(contracts=CONTRACTS), step.contract)
    refused = [hour for hour in step.partitions if hour in waiting]
    if refused:
        fault = waiting[refused[0]]
        fault.partitions = frozenset(refused)
        raise fault


def earliest_arrival(hours: Sequence[str]) -> str:
    """Return the first hour in which events of sorted hours can have arrived: clocks may run slightly ahead."""
    first = start_of(hours[0], Grain.HOUR)
    return key_of(first - Grain.HOUR.length, Grain.HOUR)


def older_hours(above: Mapping[str, Entry]) -> frozenset[str]:
    """Find the hours of arrival with usable rows, and nothing that is found in them: an older release published them.

    Such rows stay so when those of a person are taken out of them.
    """
    usable = {hour: entry.rows_out - int(entry.measures.get("dead", 0)) for hour, entry in above.items()}
    return frozenset(hour for hour, entry in above.items() if usable[hour] and not entry.measures.get(READ))


def requests(step: Step, older: Collection[str], which: Column) -> DataFrame:
    """Read usable requests of access logs from bronze, page views or not, with what is found in them."""
    is_request = ~F.col("format").isin(*sorted(NO_REQUESTS)) & (F.size("reasons") == 0) & which
    if not older:
        return step.read("bronze.visits").where(is_request)
    # A line that is read again may depend on a `#Fields` line above it.
    rows = step.read("bronze.visits").where(is_request | (F.col("format") == COMMENT))
    reader = ReceivedLines(step.deployment.settings().logs)
    found = completed(rows, reader, [column.name for column in FOUND], partition="arrival_hour", older=older)
    return found.where(F.col("format") != COMMENT)


def still_usable(rows: DataFrame, older: Collection[str], hour: str) -> tuple[DataFrame, dict[str, int]]:
    """Leave out rows that are :data:`DEAD_LETTERED`; returns the others, and the number left out by the column hour."""
    if not older:
        return rows, {}
    counted = rows.where(F.size("reasons") > 0).groupBy(hour).count().collect()
    return rows.where(F.size("reasons") == 0), {row[0]: row[1] for row in counted}
