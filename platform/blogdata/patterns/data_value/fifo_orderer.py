"""FIFO Orderer: records are forwarded in their order, each acknowledged before the next one of its key.

Problem: records have to be forwarded in their order and as soon as possible, without buffers and bins. The next record
must not be sent before the last one is known to be taken.

How it works: in one of three modes. *Individual*: one record per request, the next one after the answer. *Bulk*:
consecutive records in one request, one request at a time; it ends before the first key that it has already, because
the target may take a part of it, and what failed is sent again before anything else. *Concurrent*: single records in
up to five requests at once, as an idempotent producer does; the records of a key always take the same lane, each
after the answer to the last one, under an idempotency key that makes a retry harmless.

A record that comes later than one of its key that was taken is a correction of it, and says so (:mod:`.outbox`).

The trap: FIFO is not exactly once. A record may be taken and its answer lost, and then it is sent twice; so each
request is noted in an outbox before it is sent, and repeated under the same idempotency key. The second trap is
requests in flight: two of one key at once, and the retry of the first one arrives after the second.

When not to use it: for many records of many keys, when requests are slow; Bin Pack Orderer needs far fewer.

Source: Data Engineering Design Patterns, ch. 5.
"""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from blogdata.patterns.data_value.outbox_account import Delivery

LANES = 5
"""Requests in flight of the concurrent mode; an idempotent producer of Kafka has as many at most."""
MOST_TRIES = 50
"""Times a record may fail in one execution; after that everything behind it waits for the next one."""


class Mode(str, Enum):
    """How records are sent."""

    INDIVIDUAL = "individual"
    BULK = "bulk"
    CONCURRENT = "concurrent"


class Fifo:
    """Sends records first in, first out.

    Args:
        records: The records, in their order.
        mode: How they are sent.
        size: Most records of a bulk request.
    """

    def __init__(self, records: Iterable[Delivery], *, mode: Mode, size: int) -> None:
        self.bulk = mode is Mode.BULK
        self.in_flight = LANES if mode is Mode.CONCURRENT else 1
        self._size = size if self.bulk else 1
        self._lanes: list[deque[Delivery]] = [deque() for _ in range(self.in_flight)]
        self._busy: set[int] = set()
        self._fails: Counter[str] = Counter()
        for record in records:
            self._lanes[self._lane(record.key)].append(record)

    def next(self) -> Sequence[Delivery]:
        """Return the first records of a lane without a request; empty if there is none."""
        for number, lane in enumerate(self._lanes):
            if lane and number not in self._busy and self._fails[lane[0].id] < MOST_TRIES:
                self._busy.add(number)
                return self._first(lane)
        return []

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        """Take the outcome of a request; failed records are sent again before any other one of their lane.

        Args:
            records: The request.
            failed: Indexes of the records that were not taken.
        """
        number = self._lane(records[0].key)
        lane = self._lanes[number]
        for _ in records:
            lane.popleft()
        again = [records[index] for index in sorted(failed)]
        self._fails.update(record.id for record in again)
        lane.extendleft(reversed(again))
        self._busy.remove(number)

    def _first(self, lane: deque[Delivery]) -> list[Delivery]:
        found: list[Delivery] = []
        keys: set[str] = set()
        for record in lane:
            if len(found) == self._size or record.key in keys:
                break
            found.append(record)
            keys.add(record.key)
        return found

    def _lane(self, key: str) -> int:
        # The hash of a text differs between processes.
        return zlib.crc32(key.encode()) % self.in_flight


def line_up(records: Iterable[Delivery], *, mode: Mode, size: int) -> Fifo:
    """Line records up, first in, first out.

    Args:
        records: The records, in their order.
        mode: How they are sent.
        size: Most records of a bulk request.

    Returns:
        The requests, one after another, each as the outcome of those before allows.
    """
    return Fifo(records, mode=mode, size=size)
