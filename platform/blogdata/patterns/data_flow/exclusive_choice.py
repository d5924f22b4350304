"""Exclusive Choice: one declared table of dates decides which branch a partition takes, and each run shows it.

Problem: a writer is being replaced. Days before a date belong to the old one, later days to the new one, and two
pipelines, or an `if` somewhere inside a step, make it hard to see which of them computed a day.

How it works: a :class:`Choice` is a list of phases, each with its first day and its branches. :func:`taken` finds the
phase of a partition from its key alone: no table is opened. So a backfill in a year takes the same branch as the first
run. The step that decides is a node of the run's graph with one optional output per branch: the branch that is not
taken is skipped there, by name.

The trap: deciding by today's date. A late run, or a backfill of an old day, then takes another branch than the day took
when it was first computed.

When not to use it: when the branches are chosen by the rows (Dead-Letter splits those), or when there are so many
conditions that a list of dates cannot say them: then these are different datasets.

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from blogdata.errors import ConfigurationError
from blogdata.publish.partitions import Grain, start_of


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A span of partitions that take the same branches.

    Args:
        name: What it is called in the run's graph.
        branches: Names of the branches that are taken; several are a Parallel Split.
        since: Key of its first partition; empty for the first phase, which has no beginning.
    """

    name: str
    branches: tuple[str, ...]
    since: str = ""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The phases of a change, in their order; exactly one holds for a partition.

    Args:
        grain: Length of a partition.
        phases: The phases; each one ends where the next one begins.

    Raises:
        ConfigurationError: The first phase has a beginning, a later one has none or begins no later than the one
            before it, or a phase has no branch.
    """

    grain: Grain
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        """Refuse phases of which not exactly one holds for each partition."""
        if not self.phases or self.phases[0].since:
            raise self._refused("the first phase has no beginning, so that every partition has a phase")
        for before, phase in zip(self.phases, self.phases[1:], strict=False):
            if not phase.since or (before.since and self._start(phase) <= self._start(before)):
                raise self._refused(f"the phase {phase.name} has to begin after {before.name}")
            self._start(phase)
        for phase in self.phases:
            if not phase.branches:
                raise self._refused(f"the phase {phase.name} takes no branch")

    @property
    def branches(self) -> tuple[str, ...]:
        """Names of all branches, in the order in which phases first take them."""
        return tuple(dict.fromkeys(branch for phase in self.phases for branch in phase.branches))

    def _start(self, phase: Phase) -> datetime:
        return start_of(phase.since, self.grain)

    def _refused(self, what: str) -> ConfigurationError:
        return ConfigurationError(what=what, where="phases of a choice", next_step="mend the dates of the phases")


def taken(choice: Choice, key: str) -> Phase:
    """Find the phase of a partition, from its key alone.

    Args:
        choice: The phases.
        key: Key of the partition.

    Returns:
        The last phase that has begun.

    Raises:
        ConfigurationError: The key is not in the grain's format.
    """
    moment = start_of(key, choice.grain)
    begun = [phase for phase in choice.phases if not phase.since or start_of(phase.since, choice.grain) <= moment]
    return begun[-1]
