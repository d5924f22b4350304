"""Keeps the tables of the lake tidy: a list of actions, each of which decides without Spark whether it has work to do.

An action works on one dataset at a time, under a claim, so that a run that publishes the dataset meanwhile loses
nothing. A dataset that another run is publishing is left for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from blogdata.errors import PlatformError
from blogdata.evidence.claims import PARTITION_STATE, Claims
from blogdata.evidence.events import EVENTS, EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration import owners
from blogdata.publish.contract import Contract
from blogdata.publish.target import Engine, RunContext, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN = tuple(
    Contract(dataset=name, description=what, owner="team:platform", columns=())
    for name, what in (
        (EVENTS, "The event log"),
        (PARTITION_STATE, "Claims on partitions"),
    )
)
"""The platform's own tables; the action that compacts leaves them to what writes them."""
BUSY = "another run is publishing it"


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What an action decides by."""

    lake: Lake
    events: EventLog
    now: datetime


@dataclass(frozen=True, kw_only=True)
class Upkeep(Inspection):
    """A run that maintains tables.

    Args:
        spark: Opens the Spark session; called only if there is something to do that needs it.
        probe: Folder through which a test steps writes; None in real use.
    """

    run: RunContext
    spark: Callable[[], AbstractContextManager[SparkSession]]
    engine: Engine = Engine.TRANSACTION
    probe: str | None = None

    def target(self, contract: Contract) -> Target:
        """Return what is written of a dataset."""
        return Target(lake=self.lake, contract=contract, run=self.run, engine=self.engine, probe=self.probe)

    @contextmanager
    def claimed(self, contract: Contract, partitions: Sequence[str]) -> Iterator[list[str]]:
        """Claim partitions of a dataset, unless another run has claimed any of them.

        Yields:
            Keys of the claimed partitions; empty if another run publishes anything of the dataset.
        """
        # A companion is published under the claim of its main dataset.
        claims, owner = Claims(self.lake, contract.main, alive=owners.alive), owners.this_run()
        taken = [] if claims.held() else claims.take(partitions, owner)
        try:
            yield taken
        finally:
            claims.release(taken, owner)


@dataclass(frozen=True, kw_only=True)
class Due:
    """Work that an action has found.

    Args:
        partitions: Keys of the partitions concerned; empty if it concerns the table as a whole.
        bytes: Their size in bytes.
    """

    dataset: str
    action: str
    partitions: tuple[str, ...] = ()
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Done:
    """Work that an action has done, or has left for the next time.

    Args:
        bytes: Their size in bytes.
        left: Why it was not done; empty: it was.
    """

    due: Due
    files: int = 0
    bytes: int = 0
    left: str = ""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Maintenance of a dataset that an error has ended; that of the other datasets goes on."""

    dataset: str
    error: PlatformError


class Action(Protocol):
    """One kind of maintenance."""

    name: str

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide, without Spark, whether there is work on a dataset; None if there is none."""

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        """Do the work."""


def look(seen: Inspection, actions: Sequence[Action], contracts: Iterable[Contract]) -> Iterator[Due | Fault]:
    """Find the work that is due, without Spark and without a claim.

    Yields:
        The work, and the datasets of which it is unknown.
    """
    for contract in contracts:
        try:
            yield from (due for action in actions if (due := action.due(seen, contract)) is not None)
        except PlatformError as error:
            yield Fault(dataset=contract.dataset, error=error)


def maintain(upkeep: Upkeep, actions: Sequence[Action], contracts: Iterable[Contract]) -> Iterator[Done | Fault]:
    """Do what is due, dataset by dataset, in the order of the actions; each one sees what those before it have left.

    Yields:
        What was done, and the datasets of which the rest could not be.
    """
    for contract in contracts:
        try:
            for action in actions:
                if (due := action.due(upkeep, contract)) is not None:
                    yield action.do(upkeep, contract, due)
        except PlatformError as error:
            yield Fault(dataset=contract.dataset, error=error)
