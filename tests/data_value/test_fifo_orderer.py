"""Records are forwarded in order, each acknowledged before the next one of its key.

Pattern: FIFO Orderer.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from blogdata.patterns.data_value.fifo_orderer import LANES, MOST_TRIES, Mode, line_up
from blogdata.patterns.data_value.ordered_delivery import Refused, deliver
from blogdata.patterns.data_value.outbox_account import DeliveryRequest
from blogdata.simulator.partner import PartnerFaults
from data_value.partner_feed import by_key, expected, outbox, partner, received, rows, target

LATER = "9999"


@pytest.mark.parametrize("mode", Mode)
def test_retries_keep_the_order(mode: Mode, tmp_path: Path) -> None:
    taken, file = rows(12, 3), tmp_path / "partner.jsonl"
    box = outbox(tmp_path, taken)
    with partner(file, PartnerFaults.every(0.05, slow_seconds=0.15), seed=5) as server, target(server) as there:
        deliver(line_up(box.due(before=LATER), mode=mode, size=500), box, there, patience=20)
    found = received(file)
    assert by_key(found) == expected(taken)
    assert box.open() == []
    if mode is Mode.INDIVIDUAL:
        times = [one["payload"]["at"] for one in found]
        assert times == sorted(times)


def test_a_bulk_request_ends_before_a_key_repeats(tmp_path: Path) -> None:
    box = outbox(tmp_path, rows(3, 2))
    fifo = line_up(box.due(before=LATER), mode=Mode.BULK, size=500)
    first = fifo.next()
    assert len({one.key for one in first}) == len(first) == 3
    assert fifo.next() == [], "one request at a time"
    fifo.settle(first, {1})
    assert fifo.next()[0] == first[1], "failed records come first"


def test_lanes_send_at_once_and_keep_keys_apart(tmp_path: Path) -> None:
    fifo = line_up(outbox(tmp_path, rows(40, 2)).due(before=LATER), mode=Mode.CONCURRENT, size=500)
    flying = [one for _ in range(LANES) for one in fifo.next()]
    assert len({one.key for one in flying}) == LANES
    assert fifo.next() == []


@pytest.mark.parametrize(("mode", "sent_at_least"), [(Mode.INDIVIDUAL, 1), (Mode.BULK, 3), (Mode.CONCURRENT, 30)])
def test_a_record_that_is_never_taken_ends_its_lane(mode: Mode, sent_at_least: int, tmp_path: Path) -> None:
    """The records behind it in its lane wait for the next run; other lanes continue."""
    fifo = line_up(outbox(tmp_path, rows(40, 1)).due(before=LATER), mode=mode, size=3)
    bad, sent = "user-001", Counter[str]()
    while found := fifo.next():
        sent.update(one.key for one in found)
        assert sent[bad] <= MOST_TRIES
        fifo.settle(found, {index for index, one in enumerate(found) if one.key == bad})
    assert sent[bad] == MOST_TRIES
    assert sent_at_least <= len(sent) <= 40


class OneRefused:
    """A target that permanently refuses one key, and answers the others only after that."""

    def __init__(self, key: str) -> None:
        self.key, self.refused = key, threading.Event()

    def send(self, request: DeliveryRequest) -> Mapping[int, str]:
        if request.records[0].key == self.key:
            self.refused.set()
            raise Refused(what="refused", where="the target", next_step="correct it")
        assert self.refused.wait(10)
        return {}


def test_a_refusal_in_one_lane_keeps_the_answers_of_others(tmp_path: Path) -> None:
    box = outbox(tmp_path, rows(40, 1))
    fifo = line_up(box.due(before=LATER), mode=Mode.CONCURRENT, size=1)
    first = line_up(box.due(before=LATER), mode=Mode.CONCURRENT, size=1).next()[0].key
    with pytest.raises(Refused):
        deliver(fifo, box, OneRefused(first), patience=0)
    (line,) = box.lines()
    assert box.open() == [], "an answered request is not open"
    assert line.states["delivered"] >= LANES - 1
    assert line.missing == 0


def test_sending_and_acknowledging_is_not_exactly_once(tmp_path: Path) -> None:
    """Why the outbox is needed: a sender that forgets unanswered requests sends their records a second time."""
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, rows(2, 1))
    with partner(file, PartnerFaults(late_error=1.0)) as server, target(server) as there:
        for _ in range(2):
            with pytest.raises(Exception, match="500"):
                deliver(line_up(box.due(before=LATER), mode=Mode.INDIVIDUAL, size=1), box, there, patience=0)
            box.given_up(box.open()[0].request)
    found = received(file)
    assert len(found) == 2
    assert found[0] == found[1]
