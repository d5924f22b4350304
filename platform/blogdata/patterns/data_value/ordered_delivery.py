"""Ordered delivery: records of one key reach a target in their order, each once, through failures and crashes.

An orderer (:mod:`.bin_pack_orderer`, :mod:`.fifo_orderer`) decides which records go into the next request. The outbox
(:mod:`.outbox`) makes each request durable before it is sent, and its answer before the next one of the same keys. A
target sends it. An unanswered request may have been taken, so it is repeated with the same id, which the target
recognizes; a request that certainly was not taken is given up.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from blogdata.errors import PlatformError
from blogdata.patterns.data_value.outbox import Outbox
from blogdata.patterns.data_value.outbox_account import Delivery, DeliveryRequest

THROTTLED = "throttled"
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0


class NotTaken(PlatformError):
    """Raised when a request certainly was not taken: it was not sent, or the target refused all of it for now."""

    transient = True
    wait_seconds: float | None = None
    """How long the target asks to wait; None if it does not say."""


class Undelivered(PlatformError):
    """Raised when a request was sent and its outcome is unknown: it may have been taken."""

    transient = True


class Refused(PlatformError):
    """Raised when the target refuses a request for good; none of its records was taken by it."""


class Receiver(Protocol):
    """Where records are delivered."""

    def send(self, request: DeliveryRequest) -> Mapping[int, str]:
        """Send a request.

        Returns:
            Index of each record that was not taken, with the reason; the others were taken.

        Raises:
            NotTaken: None of it was taken.
            Undelivered: The outcome is unknown.
            Refused: The target will never take it.
        """


class Orderer(Protocol):
    """Decides which records go into the next request."""

    bulk: bool

    def next(self) -> Sequence[Delivery]:
        """Return the records of the next request; empty if there are none to be sent."""

    def settle(self, records: Sequence[Delivery], failed: Collection[int]) -> None:
        """Take the outcome of a request; the failed records come again, before the next ones of their keys."""


def deliver(
    orderer: Orderer,
    journal: Outbox,
    target: Receiver,
    *,
    unanswered: Sequence[DeliveryRequest] = (),
    patience: float,
) -> int:
    """Deliver all records of an orderer.

    Args:
        patience: Seconds for which a request is tried.

    Returns:
        Number of records that were taken.

    Raises:
        NotTaken: The target does not take requests; what was not taken waits.
        Undelivered: The target does not answer; the request is to be repeated.
        Refused: The target refused a request for good.
    """
    taken, pause = 0, _FIRST_PAUSE
    for request in unanswered:
        failed = _send(request, journal, target, patience, uncertain=True)
        taken += len(request.records) - len(failed)
    while records := orderer.next():
        request = journal.opened(records, bulk=orderer.bulk)
        failed = _send(request, journal, target, patience)
        orderer.settle(request.records, failed)
        taken += len(request.records) - len(failed)
        pause = min(2 * pause, _LONGEST_PAUSE) if len(failed) == len(request.records) else _FIRST_PAUSE
        if THROTTLED in failed.values():
            time.sleep(pause)
    return taken


def _send(
    request: DeliveryRequest, journal: Outbox, target: Receiver, patience: float, *, uncertain: bool = False
) -> Mapping[int, str]:
    """Try one request until it is settled; once it was unanswered, a later refusal says nothing about the first try."""
    deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        seconds = pause
        try:
            failed = target.send(request)
        except (NotTaken, Undelivered, Refused) as error:
            uncertain = uncertain or isinstance(error, Undelivered)
            if isinstance(error, NotTaken) and error.wait_seconds is not None:
                seconds = error.wait_seconds
            if isinstance(error, Refused) or time.monotonic() + seconds > deadline:
                if not uncertain:
                    journal.given_up(request)
                raise
        else:
            journal.answered(request, failed)
            return failed
        time.sleep(seconds)
        pause = min(2 * pause, _LONGEST_PAUSE)
