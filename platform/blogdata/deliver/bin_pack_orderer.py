"""Bin Pack Orderer: records of a key keep their order through a bulk API that takes only parts of a request.

Problem: one request per record is slow, and a bulk request may be taken in part. If it has two records of a key and the
first one fails, its retry arrives after the second one.
How it works: a :class:`BinPacker` makes bins, one after another. A bin is the content of one bulk request, and has at
most one record of each key, the next one: whatever part of it is taken, no record can overtake another one of its key.
A failed record is in the next bin again, and the next record of its key is not before it was taken; other keys go on.
Keys with the most records left come first, so there are as few bins as possible.
The trap: order within one execution only. Records are numbered in an outbox before they are sent, and what has no
answer is sent again first, under the same numbers. A second trap is a key with most of the records: its bins are nearly
empty, and take as long as single calls.
When not to use it: if the target takes requests as a whole or not at all, if records have no key, or if there are so
few that single calls do (FIFO Orderer).
Source: Data Engineering Design Patterns, ch. 5.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence

from blogdata.deliver.outbox import MOST_TRIES, Delivery


class BinPacker:
    """Packs records into bins, one after another; a record that has failed too often holds its key."""

    def __init__(self, records: Iterable[Delivery], *, size: int) -> None:
        self._size = size
        self._queues: dict[str, deque[Delivery]] = defaultdict(deque)
        self._fails: Counter[str] = Counter()
        for record in records:
            self._queues[record.key].append(record)
        self._heap = [(-len(queue), key) for key, queue in self._queues.items()]
        heapq.heapify(self._heap)

    def next(self) -> Sequence[Delivery]:
        """Return the next bin: the next record of each of the keys with the most records left."""
        keys = [heapq.heappop(self._heap)[1] for _ in range(min(self._size, len(self._heap)))]
        return [self._queues[key][0] for key in keys]

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        """Take the outcome of a bin; a failed record comes again."""
        for index, record in enumerate(records):
            queue = self._queues[record.key]
            if index not in failed:
                queue.popleft()
            else:
                self._fails[record.id] += 1
            if queue and self._fails[record.id] < MOST_TRIES:
                heapq.heappush(self._heap, (-len(queue), record.key))
