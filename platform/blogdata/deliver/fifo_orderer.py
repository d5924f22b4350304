"""FIFO Orderer: records are forwarded in their order, each acknowledged before the next one.

Problem: records have to be forwarded in their order and as soon as possible, without buffers and bins.
How it works: a :class:`Fifo` gives one record per request, the next one after the answer. What failed is sent again
before anything else.
The trap: FIFO is not exactly once. A record may be taken and its answer lost, and then it is sent twice; so each record
is numbered in an outbox before it is sent, and sent again under its number. The second trap is requests in flight: two
of one key at once, and the retry of the first one arrives after the second.
When not to use it: for many records of many keys, when requests are slow; Bin Pack Orderer needs far fewer.
Source: Data Engineering Design Patterns, ch. 5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence

from blogdata.deliver.outbox import MOST_TRIES, Delivery


class Fifo:
    """Sends records first in, first out; one that has failed too often ends the line."""

    def __init__(self, records: Iterable[Delivery]) -> None:
        self._line = deque(records)
        self._fails = 0

    def next(self) -> Sequence[Delivery]:
        return [self._line[0]] if self._line and self._fails < MOST_TRIES else []

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        if failed:
            self._fails += len(records)
        else:
            self._line.popleft()
            self._fails = 0
