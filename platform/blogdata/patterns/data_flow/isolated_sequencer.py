"""Isolated Sequencer: pipelines of two teams run one after the other, each in its own process, by a contract.

Problem: another team computes from our tables. In one pipeline, its broken import stops our run, and its dependencies
become ours; in two, somebody has to know when the other one is to run.

How it works: two ways. By data: the consumer's own sensor follows our publications, and we do not know it. By task: we
call the consumer's interface when what it needs is there. :func:`due` finds the periods all of whose partitions are
published. The consumer is started once a period, and only if it has no run for that cause (`sensors/consumers.py`). One
that cannot be called is called again later, and reported with the team to ask. Neither stops anything of ours.

The trap: coupling. By data, whoever renames a column breaks a consumer nobody has told: the team is in `consumers` of
the contract, is named before it changes, and compares the table with what it relies on before it reads. By task,
whoever renames the job breaks the call: a test compares the calls with the consumer's jobs.

When not to use it: within one team; there one lineage knows the order (Local Sequencer).

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from collections.abc import Collection

from blogdata.contract.partitions import Grain, coarser
from blogdata.patterns.data_flow.aligned_fan_in import completeness


def due(published: Collection[str], called: Collection[str], *, grain: Grain, period: Grain) -> list[str]:
    """Find the periods that are there and were not called for, oldest first.

    None before the first call is due: nobody waits for those of years ago. Without any call that is the newest period.
    """
    periods = sorted({coarser(key, grain, period) for key in published})
    found = completeness(periods, period, grain, published)
    there = [one for one in periods if found[one].complete]
    if not called:
        return there[-1:]
    return [one for one in there if one not in called and one > min(called)]
