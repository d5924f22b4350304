"""Records are forwarded in their order, each acknowledged before the next one of its key.

Pattern: FIFO Orderer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from data_value.partner_feed import by_key, expected, outbox, partner, rows, target
from patterns.data_value.fifo_orderer import LANES, Mode, line_up
from patterns.data_value.ordered_delivery import deliver
from simulator.partner import PartnerFaults, received

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
    assert fifo.next()[0] == first[1], "what failed comes first"


def test_lanes_send_at_once_and_keep_keys_apart(tmp_path: Path) -> None:
    fifo = line_up(outbox(tmp_path, rows(40, 2)).due(before=LATER), mode=Mode.CONCURRENT, size=500)
    flying = [one for _ in range(LANES) for one in fifo.next()]
    assert len({one.key for one in flying}) == LANES
    assert fifo.next() == []


def test_sending_and_acknowledging_is_not_exactly_once(tmp_path: Path) -> None:
    """What the outbox is for: a sender that forgets unanswered requests sends their records a second time."""
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, rows(2, 1))
    with partner(file, PartnerFaults(late_error=1.0)) as server, target(server) as there:
        for _ in range(2):
            with pytest.raises(Exception, match="500"):
                deliver(line_up(box.due(before=LATER), mode=Mode.INDIVIDUAL, size=1), box, there, patience=0)
            box.given_up(box.open()[0].request)
    found = received(file)
    assert len(found) == 2
    assert found[0] == found[1]
