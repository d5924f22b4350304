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

from blogdata.errors import ConfigurationError
from blogdata.patterns.data_value.bin_pack_orderer import BinPacker
from blogdata.patterns.data_value.ordered_delivery import NotTaken, Undelivered, deliver
from blogdata.patterns.data_value.outbox import Outbox, OutboxBusy, RowsUnaccounted
from data_value.partner_feed import DAY, PARTITION, by_key, expected, outbox, partner, received, row, rows, target
from data_value.partner_server import Partner, PartnerFaults

LATER = "9999"
KILLS = 8


def send(box: Outbox, server: Partner, patience: float = 5.0) -> int:
    with target(server) as there:
        repeated = deliver(BinPacker([], size=500), box, there, unanswered=box.repeatable(), patience=patience)
        return repeated + deliver(BinPacker(box.due(before=LATER), size=500), box, there, patience=patience)


def unanswered(box: Outbox, server: Partner) -> None:
    """Leave one request open that the partner accepted."""
    server.faults = PartnerFaults(late_error=1.0)
    with pytest.raises(Undelivered):
        send(box, server, patience=0.0)
    server.faults = PartnerFaults()


def states(box: Outbox) -> dict[str, int]:
    (line,) = box.lines()
    return dict(line.states)


def test_a_killed_sender_loses_and_doubles_nothing(tmp_path: Path) -> None:
    taken, file, draw = rows(60, 30), tmp_path / "partner.jsonl", random.Random(20)
    box = outbox(tmp_path, taken)
    program = [sys.executable, str(Path(__file__).with_name("sending_process.py")), str(box.path)]
    faults = PartnerFaults(crash=0.05, late_error=0.05, partial=0.05, rate_limit=0.05, latency=0.003)
    kills = within = 0
    with partner(file, faults, seed=1) as server:
        while box.due(before=LATER) or box.open():
            before = server.requests
            process = subprocess.Popen([*program, server.url])
            deadline = time.monotonic() + 60
            # The kill happens during the work, not during the start of Python.
            while process.poll() is None and server.requests == before and time.monotonic() < deadline:
                time.sleep(0.001)
            if kills < KILLS and process.poll() is None:
                time.sleep(draw.random() * 0.05)
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                process.wait()
                within += bool(box.open())
            else:
                assert process.wait() == 0
        assert server.repeated > 0
    assert kills == KILLS
    assert within > 0, "some kills left a request open"
    assert by_key(received(file)) == expected(taken)
    assert states(box) == {"delivered": len(taken)}


def test_an_unanswered_request_is_repeated_unchanged(tmp_path: Path) -> None:
    file, taken = tmp_path / "partner.jsonl", rows(4, 2)
    box = outbox(tmp_path, taken)
    with partner(file) as server:
        unanswered(box, server)
        (one,) = box.open()
        assert not {record.key for record in box.due(before=LATER)} & {record.key for record in one.request.records}
        # A correction in the meantime does not change the request.
        box.take(PARTITION, "2", [row(each.key, each.at, page="/b") for each in taken], rows_in=len(taken), private=0)
        send(box, server)
    assert by_key(received(file)) == expected(taken)
    (line,) = box.lines()
    assert (line.corrected, line.missing) == (len(one.request.records), 0)
    sent = {record.key: record for record in one.request.records}
    first = {each["key"]: each["payload"] for each in received(file) if each["sequence"] == 1}
    assert all("page" not in first[key] for key in sent)


def test_a_repeat_that_is_turned_away_stays_open(tmp_path: Path) -> None:
    """The first attempt may have been accepted: giving up now would send its records again under another id."""
    file, taken = tmp_path / "partner.jsonl", rows(3, 1)
    box = outbox(tmp_path, taken)
    with partner(file) as server:
        unanswered(box, server)
        server.faults = PartnerFaults(rate_limit=1.0)
        with pytest.raises(NotTaken):
            send(box, server, patience=0.0)
        assert len(box.open()) == 1
        server.faults = PartnerFaults()
        send(box, server)
    assert by_key(received(file)) == expected(taken)


def test_an_old_request_waits_for_a_person(tmp_path: Path) -> None:
    now = [1_000_000.0]
    file, taken = tmp_path / "partner.jsonl", rows(3, 2)
    box = outbox(tmp_path, taken, clock=lambda: now[0])
    with partner(file, clock=lambda: now[0]) as server:
        unanswered(box, server)
        now[0] += DAY
        assert send(box, server) == 0, "its keys wait with it"
        (held,) = box.held()
        assert len(received(file)) == len(held.request.records) == 3
        for name in ("nothing", ""):
            with pytest.raises(ConfigurationError, match="no single open request") as refused:
                box.resolve(name, taken=True)
            assert held.request.id in str(refused.value)
        box.resolve(held.request.id[:8], taken=True)
        assert send(box, server) == len(taken) - 3
    assert by_key(received(file)) == expected(taken)


def test_a_repeat_after_a_day_would_double(tmp_path: Path) -> None:
    """The reason for waiting: the partner has forgotten the idempotency key."""
    now = [1_000_000.0]
    file = tmp_path / "partner.jsonl"
    box = outbox(tmp_path, rows(3, 1), clock=lambda: now[0])
    with partner(file, clock=lambda: now[0]) as server, target(server) as there:
        unanswered(box, server)
        now[0] += DAY
        there.send(box.open()[0].request)
    assert len(received(file)) == 6


def test_late_rows_are_sent_as_corrections(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path)
    with partner(file) as server:
        box.take(PARTITION, "1", [row("a", 10), row("b", 10)], rows_in=2, private=0)
        send(box, server)
        box.take(
            PARTITION, "2", [row("a", 10), row("b", 10), row("a", 5), row("c", 5), row("a", 11)], rows_in=5, private=0
        )
        send(box, server)
        box.take(
            PARTITION,
            "3",
            [row("a", 10), row("b", 10), row("a", 5), row("c", 5), row("a", 11), row("a", 7)],
            rows_in=6,
            private=0,
        )
        send(box, server)
    assert by_key(received(file)) == {"a": [(1, 10), (2, 5), (3, 11), (4, 7)], "b": [(1, 10)], "c": [(1, 5)]}
    assert [one["sequence"] for one in received(file) if one.get("correction")] == [2, 4]
    assert states(box) == {"delivered": 6}


def test_an_unanswered_correction_is_repeated_unchanged(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, [row("a", 10)])
    with partner(file) as server:
        send(box, server)
        box.take(PARTITION, "2", [row("a", 10), row("a", 5)], rows_in=2, private=0)
        unanswered(box, server)
        send(box, server)
        assert server.repeated == 1
    assert [(one["sequence"], one.get("correction")) for one in received(file)] == [(1, None), (2, True)]


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


def test_a_request_with_a_private_row_is_not_repeated(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, [row("a", 1), row("b", 2)])
    with partner(file) as server:
        server.faults = PartnerFaults(unavailable=1.0)
        with pytest.raises(Undelivered):
            send(box, server, patience=0.0)
        server.faults = PartnerFaults()
        box.take(PARTITION, "2", [row("a", 1)], rows_in=2, private=1)
        assert send(box, server) == 0
        (held,) = box.held()
        assert held.withdrawn == 1
        box.resolve(held.request.id, taken=False)
        send(box, server)
    assert by_key(received(file)) == {"a": [(1, 1)]}


def test_corrected_rows_are_sent_as_they_are(tmp_path: Path) -> None:
    file, box = tmp_path / "partner.jsonl", outbox(tmp_path, [row("a", 1)])
    box.take(PARTITION, "2", [row("a", 1, page="/b")], rows_in=1, private=0)
    with partner(file) as server:
        send(box, server)
        assert received(file)[0]["payload"] == {"at": 1, "page": "/b"}
        line = box.take(PARTITION, "3", [row("a", 1, page="/c")], rows_in=1, private=0)
        assert (line.states, line.corrected) == ({"delivered": 1}, 1)
        assert send(box, server) == 0


def test_rows_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    with pytest.raises(RowsUnaccounted, match="1 of 3 rows"):
        box.take(PARTITION, "1", [row("a", 1)], rows_in=3, private=1)
    assert (box.lines(), box.due(before=LATER)) == ([], [])


def test_two_processes_never_send_at_once(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    with box.alone(), pytest.raises(OutboxBusy), box.alone():
        pass
