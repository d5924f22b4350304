"""When the partitions of a dataset run automatically."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum


class On(str, Enum):
    INPUT = "input"
    """Any of its inputs changed."""
    ALL_THERE = "all there"
    """All input partitions of the period are published; again when one of them changes."""
    FIRST_ALL_THERE = "first all there"
    """All input partitions of the period are published for the first time; late rows wait for the clock."""
    DEADLINE = "deadline"
    """All input partitions are published, or the deadline (`at`) has passed: it runs with what is there, and again with
    each part that comes later (Unaligned Fan-In). Inputs that were never published are not waited for."""


class Clock(str, Enum):
    """Latest time at which a partition runs, even with incomplete inputs; the value is a cron schedule, UTC."""

    NIGHTLY = "0 2 * * *"
    WEEKLY = "0 3 * * 1"

    @property
    def after(self) -> timedelta:
        minute, hour, *_ = self.value.split()
        return timedelta(hours=int(hour), minutes=int(minute))


@dataclass(frozen=True, kw_only=True)
class Runs:
    """When partitions of a dataset run automatically."""

    on: On = On.INPUT
    at: Clock | None = None
    """When a period that has ended runs even if its inputs are incomplete; None: never."""
    lookback: int | None = None
    """Number of partitions before the newest one that late rows still change; older ones are final unless a person runs
    them again. None: late rows change any partition."""
    judged_by: str | None = None
    """Dataset of dead letters whose `max_share` limits the rejected rows of an arrival. Above the limit, the partitions
    that the arrival touches wait for a person. None: no partition waits."""

    def __post_init__(self) -> None:
        assert self.on is not On.DEADLINE or self.at, "a dataset that runs at its deadline declares `at`"
