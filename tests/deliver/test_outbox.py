"""After any crash the outbox knows what was sent, sends nothing twice, and accounts for every row.

Patterns: Bin Pack Orderer, FIFO Orderer.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blogdata.deliver import ordered_delivery
from blogdata.deliver.bin_pack_orderer import BinPacker
from blogdata.deliver.ordered_delivery import Refused, deliver
from blogdata.deliver.outbox import Outbox
from blogdata.errors import PlatformError, TransientError
from blogdata.files import LockTimeout
from patterns.partner_feed import (
    PARTITION,
    Partner,
    PartnerFaults,
    by_key,
    expected,
    outbox,
    partner,
    received,
    row,
    rows,
    target,
)

LATER = "9999"
KILLS = 4
UNKNOWN = pytest.mark.parametrize(
    "faults", [PartnerFaults(late_error=1.0), PartnerFaults(unavailable=1.0)], ids=["taken", "not taken"]
)


def send(box: Outbox, server: Partner) -> int:
    with target(server) as there:
        return deliver(BinPacker(box.due(before=LATER), size=500), box, there)


def unanswered(box: Outbox, server: Partner, faults: PartnerFaults) -> None:
    """Send one request, and do not learn what became of it."""
    server.faults = faults
    with pytest.MonkeyPatch.context() as once:
        once.setattr(ordered_delivery, "PAUSES", ())
        with pytest.raises(TransientError):
            send(box, server)
    server.faults = PartnerFaults()


def states(box: Outbox) -> dict[str, int]:
    (line,) = box.lines()
    return dict(line.states)


def test_a_killed_sender_loses_and_doubles_nothing(tmp_path: Path) -> None:
    taken, file, draw = rows(30, 10), tmp_path / "partner.jsonl", random.Random(20)
    box = outbox(tmp_path, taken)
    program = [sys.executable, str(Path(__file__).with_name("sending_process.py")), str(box.path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    faults = PartnerFaults(crash=0.05, late_error=0.05, partial=0.05, unavailable=0.05, latency=0.003)
    kills = within = 0
    with partner(file, faults, seed=1) as server:
        while box.due(before=LATER):
            before = server.requests
            process = subprocess.Popen([*program, server.url], env=environment)
            deadline = time.monotonic() + 60
            # The kill happens during the work, not during the start of Python.
            while process.poll() is None and server.requests == before and time.monotonic() < deadline:
                time.sleep(0.001)
            if kills < KILLS and process.poll() is None:
                time.sleep(draw.random() * 0.05)
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                process.wait()
                within += "sending" in states(box)
            else:
                assert process.wait() == 0
        assert server.repeated > 0
    assert kills == KILLS
    assert within > 0, "some kills left records whose outcome nobody knew"
    assert by_key(received(file)) == expected(taken)
    assert states(box) == {"delivered": len(taken)}


@UNKNOWN
def test_what_has_no_answer_is_sent_again_first_and_as_it_was(faults: PartnerFaults, tmp_path: Path) -> None:
    file, taken = tmp_path / "partner.jsonl", rows(4, 2)
    box = outbox(tmp_path, taken)
    with partner(file) as server:
        unanswered(box, server, faults)
        # Rows are corrected meanwhile, and one comes late, before those that were sent.
        rest = [row(each.key, each.at, page="/b") for each in taken]
        box.take(PARTITION, "2", [*rest, row("user-001", -1)], rows_in=len(taken) + 1, private=0)
        send(box, server)
    found = by_key(received(file))
    assert found.pop("user-001") == [(1, 0), (2, -1), (3, 1)]
    assert found.items() <= expected(taken).items()
    (line,) = box.lines()
    assert (line.states, line.missing) == ({"delivered": len(taken) + 1}, 0)
    assert ["page" in one["payload"] for one in received(file) if one["sequence"] == 1] == [False] * 4


def test_late_rows_take_the_next_numbers(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path)
    taken = [row("a", 10), row("b", 10), row("a", 5), row("c", 5), row("a", 11), row("a", 7)]
    with partner(file) as server:
        for version, count in enumerate((2, 5, 6)):
            box.take(PARTITION, str(version), taken[:count], rows_in=count, private=0)
            send(box, server)
    assert by_key(received(file)) == {"a": [(1, 10), (2, 5), (3, 11), (4, 7)], "b": [(1, 10)], "c": [(1, 5)]}
    assert states(box) == {"delivered": 6}


def test_private_rows_are_never_sent(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path)
    box.take(PARTITION, "1", [row("a", 1), row("b", 2)], rows_in=3, private=1)
    # Visitor b opts out of sharing before anything is sent.
    line = box.take(PARTITION, "2", [row("a", 1)], rows_in=3, private=2)
    assert (line.states, line.withdrawn) == ({"waiting": 1}, 0)
    with partner(file) as server:
        send(box, server)
        # Visitor a opts out afterwards: the partner has to be informed, and the account still balances.
        line = box.take(PARTITION, "3", [], rows_in=3, private=3)
        assert (line.states, line.withdrawn, line.missing) == ({}, 1, 0)
        assert box.take(PARTITION, "4", [row("a", 1)], rows_in=3, private=2).withdrawn == 0
    assert by_key(received(file)) == {"a": [(1, 1)]}


@UNKNOWN
def test_a_row_that_was_withdrawn_is_not_sent_again(faults: PartnerFaults, tmp_path: Path) -> None:
    """The partner may have it: it counts as withdrawn. Once it may be sent again, it is there once."""
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, [row("a", 1), row("b", 2)])
    with partner(file) as server:
        unanswered(box, server, faults)
        line = box.take(PARTITION, "2", [row("a", 1), row("b", 3)], rows_in=3, private=1)
        assert (line.withdrawn, line.missing) == (1, 0)
        send(box, server)
        there = [(2, 3)] if faults.unavailable else [(1, 2), (2, 3)]
        assert by_key(received(file)) == {"a": [(1, 1)], "b": there}
        box.take(PARTITION, "3", [row("a", 1), row("b", 3), row("b", 2)], rows_in=3, private=0)
        send(box, server)
    sent = {key: sorted(records) for key, records in by_key(received(file)).items()}
    assert sent == {"a": [(1, 1)], "b": [(1, 2), (2, 3)]}
    assert states(box) == {"delivered": 3}


def test_what_a_partner_refuses_is_sent_as_its_row_is_then(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, [row("a", 1)])
    box.take(PARTITION, "1", [row("a", 1, page="/a")], rows_in=1, private=0)
    with partner(file, key="another") as server:
        with pytest.raises(Refused):
            send(box, server)
        box.take(PARTITION, "2", [row("a", 1, page="/b"), row("a", 0)], rows_in=2, private=0)
        server.key = None
        send(box, server)
        box.take(PARTITION, "3", [row("a", 1, page="/c"), row("a", 0)], rows_in=2, private=0)
        assert send(box, server) == 0, "what was taken is not sent again"
    assert [one["payload"] for one in received(file)] == [{"at": 0}, {"at": 1, "page": "/b"}]
    assert [one["sequence"] for one in received(file)] == [1, 2]
    assert states(box) == {"delivered": 2}


def test_rows_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    with pytest.raises(PlatformError, match="1 of 3 rows"):
        box.take(PARTITION, "1", [row("a", 1)], rows_in=3, private=1)
    assert (box.lines(), box.due(before=LATER)) == ([], [])


def test_two_processes_never_send_at_once(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    with box.alone(), pytest.raises(LockTimeout), box.alone():
        pass
