"""What datasets by hour of the event have in common: which hours of arrival they read, and which of them wait."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.planning.graph import Graph
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import DEAD_LETTERS, held
from blogdata.runs.step import Step
from quality.contracts import CONTRACTS
from quality.contracts.requests_daily import NO_REQUESTS

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


def requests(step: Step, which: Column) -> DataFrame:
    """Read usable requests of access logs from bronze, page views or not, with what is found in them."""
    is_request = ~F.col("format").isin(*sorted(NO_REQUESTS)) & (F.size("reasons") == 0) & which
    return step.read("bronze.visits").where(is_request)


def hour_of(time: Column) -> Column:
    """Build the hour key (`2026-01-31T05`) of a TIMESTAMP; Spark's time zone is UTC."""
    return F.date_format(time, "yyyy-MM-dd'T'HH")
