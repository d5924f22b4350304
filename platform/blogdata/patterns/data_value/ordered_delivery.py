"""Ordered delivery: records of one key reach a target in their order, each once, through failures and crashes.

An orderer (:mod:`.bin_pack_orderer`, :mod:`.fifo_orderer`) decides which records go into the next request. The outbox
(:mod:`.outbox`) numbers them durably before they are sent, and notes what was taken before it sends the next ones of
their keys. Whatever may have been taken is sent again under its number, which the target recognizes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Protocol

from blogdata.errors import PlatformError
from blogdata.patterns.data_value.outbox import Delivery, Outbox

MOST_TRIES = 50
"""Times a record may fail in one execution; after that it waits for the next one."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0


class Undelivered(PlatformError):
    """Raised when a target did not take a request, or its answer is not known: it is to be repeated."""

    transient = True
    wait_seconds = 0.0
    """How long the target asks to wait."""


class Refused(PlatformError):
    """Raised when the target refuses a request for good; none of its records was taken by it."""


class Receiver(Protocol):
    """Where records are delivered."""

    def send(self, records: Sequence[Delivery]) -> Collection[int]:
        """Send records in one request, and return the indexes of those that were not taken.

        Raises:
            Undelivered: None was taken, or nobody knows which.
        """


class Orderer(Protocol):
    """Decides which records go into the next request."""

    def next(self) -> Sequence[Delivery]:
        """Return the records of the next request; empty if there are none to be sent."""

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        """Take the outcome of a request; the failed records come again, before the next ones of their keys."""


def deliver(orderer: Orderer, outbox: Outbox, target: Receiver, *, patience: float) -> int:
    """Deliver all records of an orderer, each request tried for `patience` seconds, and return how many were taken.

    Raises:
        Undelivered: The target does not take a request, or does not answer; what it did not take waits.
    """
    count = 0
    while records := orderer.next():
        outbox.number(records)
        failed = _send(records, target, patience)
        taken = [record for index, record in enumerate(records) if index not in failed]
        outbox.taken(taken)
        orderer.settle(records, failed)
        count += len(taken)
        if failed:
            time.sleep(_FIRST_PAUSE)
    return count


def _send(records: Sequence[Delivery], target: Receiver, patience: float) -> Collection[int]:
    deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            return target.send(records)
        except Undelivered as error:
            seconds = max(pause, error.wait_seconds)
            if time.monotonic() + seconds > deadline:
                raise
        time.sleep(seconds)
        pause = min(2 * pause, _LONGEST_PAUSE)
