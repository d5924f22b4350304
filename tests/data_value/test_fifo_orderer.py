"""Records are forwarded in order, each acknowledged before the next one of its key.

Pattern: FIFO Orderer.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from blogdata.patterns.data_value.fifo_orderer import MOST_TRIES, Fifo, Mode
from blogdata.patterns.data_value.ordered_delivery import deliver
from data_value.partner_feed import by_key, expected, outbox, partner, received, rows, target
from data_value.partner_server import PartnerFaults

LATER = "9999"


@pytest.mark.parametrize("mode", Mode)
def test_retries_keep_the_order(mode: Mode, tmp_path: Path) -> None:
    taken, file = rows(12, 3), tmp_path / "partner.jsonl"
    box = outbox(tmp_path, taken)
    with partner(file, PartnerFaults.every(0.05), seed=5) as server, target(server) as there:
        deliver(Fifo(box.due(before=LATER), mode=mode, size=500), box, there, patience=20)
    found = received(file)
    assert by_key(found) == expected(taken)
    assert box.open() == []
    if mode is Mode.INDIVIDUAL:
        times = [one["payload"]["at"] for one in found]
        assert times == sorted(times)


def test_a_bulk_request_ends_before_a_key_repeats(tmp_path: Path) -> None:
    box = outbox(tmp_path, rows(3, 2))
    fifo = Fifo(box.due(before=LATER), mode=Mode.BULK, size=500)
    first = fifo.next()
    assert len({one.key for one in first}) == len(first) == 3
    fifo.settle(first, {1})
    assert fifo.next()[0] == first[1], "failed records come first"


@pytest.mark.parametrize(("mode", "sent_at_least"), [(Mode.INDIVIDUAL, 1), (Mode.BULK, 3)])
def test_a_record_that_is_never_taken_ends_the_line(mode: Mode, sent_at_least: int, tmp_path: Path) -> None:
    """The records behind it wait for the next run."""
    fifo = Fifo(outbox(tmp_path, rows(40, 1)).due(before=LATER), mode=mode, size=3)
    bad, sent = "user-001", Counter[str]()
    while found := fifo.next():
        sent.update(one.key for one in found)
        assert sent[bad] <= MOST_TRIES
        fifo.settle(found, {index for index, one in enumerate(found) if one.key == bad})
    assert sent[bad] == MOST_TRIES
    assert sent_at_least <= len(sent) <= 40


def test_sending_and_acknowledging_is_not_exactly_once(tmp_path: Path) -> None:
    """Why the outbox is needed: a sender that forgets unanswered requests sends their records a second time."""
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, rows(2, 1))
    with partner(file, PartnerFaults(late_error=1.0)) as server, target(server) as there:
        for _ in range(2):
            with pytest.raises(Exception, match="500"):
                deliver(Fifo(box.due(before=LATER), mode=Mode.INDIVIDUAL, size=1), box, there, patience=0)
            box.given_up(box.open()[0].request)
    found = received(file)
    assert len(found) == 2
    assert found[0] == found[1]
