"""Isolated Sequencer: pipelines of two teams run one after the other, each in its own process, by a contract.

Problem: another team computes from our tables. In one pipeline, its broken import stops our run, and its dependencies
become ours; in two, somebody has to know when the other one is to run.
How it works: two ways. By data: the consumer's own sensor follows our publications, and we do not know it. By task: we
call the consumer's interface once its input is complete. :func:`due` finds the periods all of whose partitions are
published. The consumer is started once a period, and only if it has no run for that cause (`sensors/consumers.py`). A
consumer that cannot be reached is called again later, and reported with the team to ask; nothing of ours stops.
The trap: coupling. By data, a renamed column breaks a consumer that was not told: the team is in `consumers` of the
contract, is named before it changes, and compares the table with what it relies on before it reads. By task, a renamed
job breaks the call: a test compares the calls with the consumer's jobs.
When not to use it: within one team; there one lineage knows the order (Local Sequencer).
Source: Data Engineering Design Patterns, ch. 6.
"""

from collections.abc import Collection

from blogdata.contract.partitions import Grain, coarser
from blogdata.patterns.data_flow.aligned_fan_in import completeness


def due(published: Collection[str], called: Collection[str], *, grain: Grain, period: Grain) -> list[str]:
    """Find the complete periods that were not called for, oldest first; before the first call, the newest one only."""
    periods = sorted({coarser(key, grain, period) for key in published})
    parts = completeness(periods, period, grain, published)
    complete = [key for key in periods if parts[key].complete]
    return [key for key in complete if key not in called and key > min(called)] if called else complete[-1:]
