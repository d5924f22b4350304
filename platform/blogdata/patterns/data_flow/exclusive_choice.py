"""Exclusive Choice: one declared table of dates decides which branch a partition takes, and each result names it.

Problem: a writer is being replaced. Days before a date belong to the old one, later days to the new one, and two
pipelines, or an `if` somewhere inside a step, make it hard to see which of them computed a day.
How it works: a :data:`Choice` maps the first day of each phase to its branches. :func:`taken` finds the branches of a
day from the day alone: no table is opened. So a backfill in a year takes the same branch as the first run. The
materialization of a day names its branches.
The trap: deciding by today's date. A late run, or a backfill of an old day, then takes another branch than the day took
when it was first computed.
When not to use it: when the branches are chosen by the rows (Dead-Letter splits those), or when there are so many
conditions that a list of dates cannot say them: then these are different datasets.
Source: Data Engineering Design Patterns, ch. 6.
"""

from collections.abc import Mapping
from datetime import date
from typing import TypeVar

Branch = TypeVar("Branch")
Choice = Mapping[date, tuple[Branch, ...]]
"""First day of a phase to the branches that its days take; several are a Parallel Split. `date.min`: the first phase"""


def taken(choice: Choice[Branch], day: date) -> tuple[Branch, ...]:
    """Find the branches of a day; a choice without the key `date.min` has none before its first phase."""
    return choice[since] if (since := max((first for first in choice if first <= day), default=None)) else ()
