"""Slow clients without a token cannot lock out clients with one: real sockets, a receiver with few places."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from blogdata.orchestration import external_events
from blogdata.patterns.ingestion.event_inbox import Inbox
from blogdata.services import config, event_receiver
from blogdata.services.config import Settings
from events_from_outside import TOKEN, deployed, event, post
from quality.contracts import CONTRACTS

PLACES = 8
LINE = b"POST /events HTTP/1.1\r\n"
LENGTH = b"Content-Length: 60000\r\n"
SLOW = {
    "says nothing": b"",
    "never ends its headers": LINE + LENGTH,
    "never sends its body": LINE + LENGTH + b"\r\n",
    "has another's token": LINE + LENGTH + b"Authorization: Bearer " + TOKEN[:-1].encode() + b"\r\n\r\n",
}


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    """A deployment with senders."""
    return deployed(tmp_path / "home")


@pytest.fixture
def server(own: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[event_receiver.Server]:
    """The receiver of the deployment, which has few places."""
    monkeypatch.setattr(event_receiver, "_MOST_AT_ONCE", PLACES)
    server = event_receiver.Server(("127.0.0.1", 0), external_events.answer(external_events.trigger(own, CONTRACTS)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def address(server: event_receiver.Server) -> tuple[str, int]:
    """The address of the receiver."""
    host, port = server.server_address[:2]
    return str(host), int(port)


def send(address: tuple[str, int], body: object) -> int:
    """Call as a sender with a token; return the status."""
    return post(f"http://{address[0]}:{address[1]}/events", body)[0]


def drip(connections: list[socket.socket], ended: threading.Event) -> None:
    """Send a byte on each connection now and then."""
    while not ended.wait(0.02):
        for connection in connections:
            with suppress(OSError):
                connection.send(b"x")


def send_slowly(connection: socket.socket) -> None:
    """Send a byte now and then, for 20 seconds."""
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.1)


@pytest.mark.parametrize("first", SLOW.values(), ids=SLOW)
def test_slow_clients_keep_nobody_out(address: tuple[str, int], first: bytes) -> None:
    ended, slow = threading.Event(), [socket.create_connection(address, timeout=30) for _ in range(5 * PLACES)]
    dripping = threading.Thread(target=drip, args=(slow, ended))
    with ExitStack() as held:
        for connection in slow:
            held.enter_context(connection)
            with suppress(OSError):
                connection.send(first)
        dripping.start()
        statuses = [send(address, event(id=str(number))) for number in range(10)]
        ended.set()
        dripping.join()
    assert statuses == [202] * 10


def test_an_authenticated_client_keeps_its_place(server: event_receiver.Server, address: tuple[str, int]) -> None:
    head = LINE + b"Authorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{" % TOKEN.encode()
    with socket.create_connection(address, timeout=30) as sender, ExitStack() as held:
        sender.sendall(head)
        deadline = time.monotonic() + 30
        while not server._proven:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for _ in range(5 * PLACES):
            held.enter_context(socket.create_connection(address, timeout=30))
        assert send(address, event(id="2")) == 202
        sender.sendall(b"}")
        assert b" 400 " in sender.recv(4096), "answered: the event has no fields"


def test_a_flood_from_one_address_takes_no_place_of_another(address: tuple[str, int]) -> None:
    body = b'{"id": "1"}'
    with socket.create_connection(address, timeout=30, source_address=("127.0.0.2", 0)) as sender, ExitStack() as held:
        sender.sendall(LINE)
        for _ in range(5 * PLACES):
            held.enter_context(socket.create_connection(address, timeout=30))
        assert send(address, event()) == 202
        sender.sendall(b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (TOKEN.encode(), len(body)) + body)
        assert b" 400 " in sender.recv(4096), "answered: the event has too few fields"


@pytest.mark.parametrize("name", ["never sends its body", "has another's token"])
def test_the_body_of_a_stranger_is_not_read(address: tuple[str, int], name: str) -> None:
    with socket.create_connection(address, timeout=30) as stranger:
        stranger.sendall(SLOW[name])
        assert b" 401 " in stranger.recv(4096), "answered before any byte of the body was sent"


def test_endless_headers_are_cut_off(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=30) as stranger:
        line, sent = b"X-Filler: " + b"x" * 60_000 + b"\r\n", 0
        with suppress(OSError):
            stranger.sendall(LINE)
            while sent < 5_000_000:
                sent += stranger.send(line)
        # Counted are bytes in the system's buffers; the receiver read 16 KiB.
        assert sent < 5_000_000


def test_a_byte_now_and_then_does_not_extend_the_time(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_receiver, "_SECONDS", 0.5)
    with socket.create_connection(address, timeout=60) as slow:
        slow.sendall(LINE + b"Authorization: Bearer %s\r\n" % TOKEN.encode() + LENGTH + b"\r\n")
        with pytest.raises(OSError):
            send_slowly(slow)


def test_an_event_cannot_request_99_years(own: Settings, address: tuple[str, int]) -> None:
    inbox: Inbox = external_events.inbox(own)
    assert send(address, event(span="1990-01-01..2089-01-01")) == 400
    assert send(address, event(span="2026-01-01T00..2026-02-01T01")) == 400
    assert [refusal.kind for refusal in inbox.refusals(9)] == ["span too long"] * 2
    assert "longer than 31 days" in inbox.refusals(1)[0].what
    assert inbox.waiting() == []
    assert send(address, event(span="2026-01-01..2026-02-01")) == 202


def test_the_longest_span_is_a_setting(own: Settings) -> None:
    file = own.home / "blogdata.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("[events]", '[events]\nmax_span = "2d"'), encoding="utf-8")
    changed = config.load(overrides={"BLOGDATA_HOME": str(own.home)})
    assert external_events.trigger(changed, CONTRACTS).longest.days == 2
