"""FIFO Orderer: records are forwarded in their order, each acknowledged before the next one of its key.

Problem: records have to be forwarded in their order and as soon as possible, without buffers and bins. The next record
must not be sent before the last one is known to be taken.

How it works: a :class:`Fifo` sends in one of two modes. *Individual*: one record per request, the next one after the
answer. *Bulk*: consecutive records in one request, one request at a time; it ends before the first key that it has
already, because the target may take a part of it, and what failed is sent again before anything else.

A record that comes later than one of its key that was taken is a correction of it, and says so (:mod:`.outbox`).

The trap: FIFO is not exactly once. A record may be taken and its answer lost, and then it is sent twice; so each
request is noted in an outbox before it is sent, and repeated under the same idempotency key. The second trap is
requests in flight: two of one key at once, and the retry of the first one arrives after the second.

When not to use it: for many records of many keys, when requests are slow; Bin Pack Orderer needs far fewer.

Source: Data Engineering Design Patterns, ch. 5.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from blogdata.patterns.data_value.outbox_account import Delivery

MOST_TRIES = 50
"""Times a record may fail in one execution; after that everything behind it waits for the next one."""


class Mode(str, Enum):
    """How records are sent."""

    INDIVIDUAL = "individual"
    BULK = "bulk"


class Fifo:
    """Sends records first in, first out."""

    def __init__(self, records: Iterable[Delivery], *, mode: Mode, size: int) -> None:
        self.bulk = mode is Mode.BULK
        self._size = size if self.bulk else 1
        self._line = deque(records)
        self._fails: Counter[str] = Counter()

    def next(self) -> Sequence[Delivery]:
        """Return the first records of the line; empty if there is none, or if the first one has failed too often."""
        found: dict[str, Delivery] = {}
        for record in self._line:
            if len(found) == self._size or record.key in found or self._fails[self._line[0].id] == MOST_TRIES:
                break
            found[record.key] = record
        return [*found.values()]

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        """Take the outcome of a request; failed records, by their indexes, are sent again before any other one."""
        for _ in records:
            self._line.popleft()
        again = [records[index] for index in sorted(failed)]
        self._fails.update(record.id for record in again)
        self._line.extendleft(reversed(again))
