"""Isolated Sequencer: pipelines of two teams run one after the other, each in its own process, by a contract.

Problem: another team computes from our tables. In one pipeline, its broken import stops our run, and its dependencies
become ours; in two, somebody has to know when the other one is to run.

How it works: two ways. By data: the consumer's own sensor follows our publications, and we do not know it. By task: we
call the consumer's interface when what it needs is there. :func:`due` finds the periods all of whose partitions are
published, which are more than one of ours if the consumer runs less often. :func:`call` starts the consumer once a
period, and asks it first whether it has a run for that cause, so a lost memory starts nothing twice. A consumer that
cannot be reached is called again later; one that no longer has the job is reported with the team to ask. Neither stops
anything of ours.

The trap: coupling. By data, whoever renames a column breaks a consumer nobody has told: the team is in `consumers` of
the contract, is named before it changes, and compares the table with what it relies on before it reads. By task,
whoever renames the job breaks the call: a test compares the calls with the consumer's jobs.

When not to use it: within one team; there one lineage knows the order (Local Sequencer).

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from blogdata.errors import PlatformError
from blogdata.patterns.data_flow.aligned_fan_in import completeness
from blogdata.publish.partitions import Grain, coarser


class ConsumerFault(PlatformError):
    """Raised when a consumer could not be called."""


class ConsumerUnreachable(ConsumerFault):
    """Raised when nothing answers in time; it is called again."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Call:
    """A job of another team that is started when a period of a dataset is there.

    Args:
        team: The team, as `team:name`; a consumer in the contract of the dataset.
    """

    team: str
    dataset: str
    grain: Grain
    period: Grain
    location: str
    job: str

    @property
    def name(self) -> str:
        return f"{self.location}/{self.job}"

    def cause(self, period: str) -> str:
        """Return what identifies the run for a period, to us and to the consumer."""
        return f"{self.dataset} {period}"


class Consumer(Protocol):
    def run_for(self, call: Call, period: str) -> str | None:
        """Find the run that was started for a period; None if there is none."""

    def start(self, call: Call, period: str) -> str:
        """Start the job for a period; returns the run.

        Raises:
            ConsumerFault: It has no such job, or refuses the call.
        """


@dataclass(kw_only=True)
class Called:
    runs: dict[str, str] = field(default_factory=dict)
    faults: dict[str, ConsumerFault] = field(default_factory=dict)


def due(what: Call, published: Collection[str], called: Collection[str]) -> list[str]:
    """Find the periods that are there and were not called for, oldest first.

    Args:
        called: Periods that were called for. Empty: of all periods that are there only the newest is due, since nobody
            waits for those of years ago; nor are those before the first call.
    """
    periods = sorted({coarser(key, what.grain, what.period) for key in published})
    found = completeness(periods, what.period, what.grain, published)
    there = [period for period in periods if found[period].complete]
    if not called:
        return there[-1:]
    return [period for period in there if period not in called and period > min(called)]


def call(consumer: Consumer, what: Call, periods: Sequence[str]) -> Called:
    """Start the consumer once for each period; after a consumer that cannot be reached, no further one is tried."""
    result = Called()
    for period in periods:
        try:
            result.runs[period] = consumer.run_for(what, period) or consumer.start(what, period)
        except ConsumerFault as error:
            result.faults[period] = error
            if error.transient:
                break
    return result
