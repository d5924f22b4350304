"""Ordered delivery: records of one key reach a target in their order, each once, through failures and crashes.

An orderer (:mod:`.bin_pack_orderer`, :mod:`.fifo_orderer`) decides which records go into the next request. The outbox
(:mod:`.outbox`) makes each request durable before it is sent, and its answer before the next one of the same keys. A
target sends it. An unanswered request may have been taken, so it is repeated with the same id, which the target
recognizes; a request that certainly was not taken is given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
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
        """Send a request, from any thread.

        Returns:
            Index of each record that was not taken, with the reason; the others were taken.

        Raises:
            NotTaken: None of it was taken.
            Unanswered: The outcome is unknown.
            Refused: The target will never take it.
        """


class Orderer(Protocol):
    """Decides which records go into the next request."""

    bulk: bool
    in_flight: int

    def next(self) -> Sequence[Delivery]:
        """Return the records of the next request; empty if there are none, or none before others are settled."""

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
        orderer: The records, and the order of the requests.
        journal: Where requests and answers are noted, durably.
        target: Where they are sent.
        unanswered: Requests of earlier processes; they are repeated first.
        patience: Seconds for which a request is tried.

    Returns:
        Number of records that were taken.

    Raises:
        NotTaken: The target does not take requests; what was not taken waits.
        Unanswered: The target does not answer; the request is to be repeated.
        Refused: The target refused a request for good.
    """
    taken = 0
    for request in unanswered:
        failed = _settled(request, journal, target, patience, uncertain=True)
        journal.answered(request, failed)
        taken += len(request.records) - len(failed)
    pause = _FIRST_PAUSE
    with ThreadPoolExecutor(orderer.in_flight) as pool:
        sent: dict[Future[Mapping[int, str]], DeliveryRequest] = {}
        fault: PlatformError | None = None
        while True:
            while fault is None and len(sent) < orderer.in_flight and (records := orderer.next()):
                request = journal.opened(records, bulk=orderer.bulk)
                sent[pool.submit(_tried, request, target, patience)] = request
            if not sent:
                break
            for done in wait(sent, return_when=FIRST_COMPLETED).done:
                request = sent.pop(done)
                try:
                    failed = _outcome(done.result, request, journal)
                except PlatformError as error:
                    # Others are under way: their answers are noted before this one is raised.
                    fault = error
                    continue
                journal.answered(request, failed)
                orderer.settle(request.records, failed)
                taken += len(request.records) - len(failed)
                pause = min(2 * pause, _LONGEST_PAUSE) if len(failed) == len(request.records) else _FIRST_PAUSE
                if THROTTLED in failed.values():
                    time.sleep(pause)
    if fault is not None:
        raise fault
    return taken


@dataclass(frozen=True, kw_only=True)
class _Tried:
    error: PlatformError
    uncertain: bool


class _Failed(Exception):
    def __init__(self, tried: _Tried) -> None:
        super().__init__(tried.error.what)
        self.tried = tried


def _settled(
    request: DeliveryRequest, journal: Outbox, target: Receiver, patience: float, *, uncertain: bool
) -> Mapping[int, str]:
    return _outcome(lambda: _tried(request, target, patience, uncertain=uncertain), request, journal)


def _outcome(send: Callable[[], Mapping[int, str]], request: DeliveryRequest, journal: Outbox) -> Mapping[int, str]:
    try:
        return send()
    except _Failed as error:
        if not error.tried.uncertain:
            journal.given_up(request)
        raise error.tried.error from error


def _tried(
    request: DeliveryRequest, target: Receiver, patience: float, *, uncertain: bool = False
) -> Mapping[int, str]:
    """Try one request until it is settled; once it was unanswered, a later refusal says nothing about the first try."""
    deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            return target.send(request)
        except NotTaken as error:
            seconds = pause if error.wait_seconds is None else error.wait_seconds
            problem: PlatformError = error
        except Undelivered as error:
            seconds, problem, uncertain = pause, error, True
        except Refused as error:
            raise _Failed(_Tried(error=error, uncertain=uncertain)) from error
        if time.monotonic() + seconds > deadline:
            raise _Failed(_Tried(error=problem, uncertain=uncertain)) from problem
        time.sleep(seconds)
        pause = min(2 * pause, _LONGEST_PAUSE)
