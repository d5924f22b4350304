"""What a dataset declares about its inputs and its runs; plans, jobs, schedules and pictures are derived from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from patterns.core.commit import Entry
    from patterns.core.contract import Contract
    from patterns.core.partitions import Grain
    from patterns.ingestion.readiness_marker import LandedPartition

Wanted = Mapping[str, Mapping[str, str]]
"""Dataset to the partitions that must run, each with the reason."""


class Look(Protocol):
    """What has landed and what is published, at one moment."""

    def published(self, dataset: str) -> Mapping[str, Entry]:
        """Partition to its newest publication."""

    def history(self, dataset: str) -> Sequence[Entry]:
        """Every publication a dataset ever had, in the order of the versions."""

    def executions(self, dataset: str) -> Sequence[Entry]:
        """All executions and restorations of a dataset that is written in order."""

    def landed(self, table: str, grain: Grain) -> Sequence[LandedPartition]:
        """The complete partitions of a landed table, in order."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """One dataset reads another one.

    Args:
        above: What is read, as `layer.table`.
        below: The contract of the reader.
    """

    above: str
    below: Contract


class Reach(Protocol):
    """How partitions of a dataset correspond to those of its input, in both directions."""

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions below that have not read what they must have read.

        Returns:
            Partition to the state of the input that it lacks; the same text as long as that state is the same.
        """

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the partitions below that have read partitions above.

        Args:
            look: What is published.
            edge: The two datasets.
            wanted: All partitions that will run so far; those of the datasets above are complete.
            asked: Those among them that a person asked for.

        Returns:
            Partition below to the partition above that reaches it; an empty text stands for all of it.
        """


@dataclass(frozen=True, kw_only=True)
class Read:
    """An input of a dataset.

    Args:
        dataset: Name as `layer.table`; `landing.table` for what comes in from outside.
        reach: How the partitions correspond.
    """

    dataset: str
    reach: Reach


class On(str, Enum):
    """What makes a partition run by itself."""

    INPUT = "input"
    """Any of its inputs changed."""
    ALL_THERE = "all there"
    """All partitions of the period are there; again when one of them changes."""
    FIRST_ALL_THERE = "first all there"
    """All partitions of the period are there for the first time; late rows wait for the clock."""


class Clock(str, Enum):
    """When a partition runs at the latest, whatever is there by then; the value is a cron schedule, UTC."""

    NIGHTLY = "0 2 * * *"
    WEEKLY = "0 3 * * 1"


@dataclass(frozen=True, kw_only=True)
class Runs:
    """When partitions of a dataset run by themselves.

    Args:
        on: What makes them run.
        at: When a period that has ended runs even if its inputs are incomplete; None: never.
        lookback: How many partitions before the newest one late rows still change; older ones are final unless a person
            runs them again. None: late rows change any partition.
        judged_by: Dataset of dead letters whose `max_share` says when too much of an arrival was rejected: what it
            touches waits for a person then. None: nothing waits.
    """

    on: On = On.INPUT
    at: Clock | None = None
    lookback: int | None = None
    judged_by: str | None = None
