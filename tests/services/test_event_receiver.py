"""External Trigger: a real receiver in its own process, with real and sometimes hostile calls."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.orchestration import external_events
from blogdata.patterns.ingestion.event_inbox import Inbox
from blogdata.services import config, doctor, event_service, event_tokens, processes
from blogdata.services.config import Settings
from blogdata.services.event_receiver import MOST_BYTES
from events_from_outside import TOKEN, deployed, event, post, write_token
from kills import kill

COMMAND = [sys.executable, "-m", "blogdata", "events", "--serve"]
DYING = """
import os, signal, sys
from blogdata.orchestration import external_events
from quality.contracts import CONTRACTS
from blogdata.services import config, event_receiver, event_service
settings = config.load()
answer = external_events.answer(external_events.trigger(settings, CONTRACTS))
def dies(post):
    if sys.argv[1] == "after":
        answer(post)
    os.kill(os.getpid(), signal.SIGKILL)
event_receiver.serve(settings, dies, log=event_service.log_file(settings))
"""
"""A receiver whose process is killed before or after an event is on the disk, and never answers."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Settings]:
    """A deployment with senders; its services are stopped at the end."""
    settings = deployed(tmp_path / "home", port=processes.free_port())
    yield settings
    event_service.stop(settings)


@pytest.fixture
def url(own: Settings) -> str:
    """The address of the running receiver."""
    found = event_service.up(own, COMMAND)
    assert (found.state, found.url) == ("running", f"http://127.0.0.1:{own.events.port}/events")
    assert found.url is not None
    return found.url


@pytest.fixture
def inbox(own: Settings) -> Inbox:
    """The inbox of the deployment."""
    return external_events.inbox(own)


def raw(url: str, request: bytes, *, seconds: float = 30.0) -> bytes:
    """Send bytes; return everything received until the server closes the connection."""
    host, port = url.removeprefix("http://").removesuffix("/events").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        connection.sendall(request)
        answer = b""
        while block := connection.recv(65536):
            answer += block
        return answer


def test_a_call_is_accepted_refused_and_logged(own: Settings, url: str, inbox: Inbox) -> None:
    body = event()
    assert post(url, body) == (202, {"event": "shop/release-42", "state": "waiting", "known": False})
    assert post(url, body) == (200, {"event": "shop/release-42", "state": "waiting", "known": True})
    assert post(url, event())[0] == 409, "the same id at another time"
    assert post(url, event(id="1"), token=None)[0] == 401
    assert post(url, event(id="2"), token=TOKEN[:-1])[0] == 401
    assert post(url, event(id="3", source="partner", datasets=["bronze.users"]))[0] == 403
    assert post(url, event(id="4", datasets=["bronze.nothing"]))[0] == 400
    assert post(url, event(id="5", time="2020-01-05T10:00:00Z"))[0] == 400
    assert post(url, b"{")[0] == 400
    assert post(url, b"x" * (MOST_BYTES + 1))[0] == 413
    assert post(url, b"x" * 20 * MOST_BYTES, token="no")[0] == 401
    assert post(url.removesuffix("s"), event(id="6"))[0] == 404
    assert [entry.event.id for entry in inbox.waiting()] == ["release-42"]
    kinds = [refusal.kind for refusal in inbox.refusals(100)]
    assert kinds == [
        *("id reused", "forged", "forged", "not permitted", "undeclared"),
        *("wrong time", "malformed", "too large", "forged"),
    ]
    log = event_service.log_file(own).read_text(encoding="utf-8")
    assert [line.split(": ")[1][:3] for line in log.splitlines()] == [
        *("202", "200", "409", "401", "401", "403", "400", "400", "400", "413", "401", "404"),
    ]
    kept = b"".join(
        file.read_bytes() for file in own.home.rglob("*") if file.is_file() and file.parent.name != "secrets"
    )
    assert TOKEN[:-1].encode() not in kept


def test_hostile_requests_end_and_start_nothing(url: str, inbox: Inbox) -> None:
    assert b" 411 " in raw(url, b"POST /events HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert b" 411 " in raw(url, b"POST /events HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
    assert b" 413 " in raw(
        url,
        b"POST /events HTTP/1.1\r\nContent-Length: 99999999999999\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN.encode(),
    ), "it answers before the body arrives"
    assert b" 405 " in raw(url, b"GET /events HTTP/1.1\r\n\r\n")
    assert b" 400 " in raw(url, b"\xff\xfe\r\n\r\n")
    assert post(url, event(id="line\nbreak"))[0] == 400
    assert inbox.waiting() == []


def test_simultaneous_deliveries_are_one_event(url: str, inbox: Inbox) -> None:
    body = event()
    with ThreadPoolExecutor(8) as clients:
        statuses = sorted(status for status, _ in clients.map(lambda _: post(url, body), range(8)))
    assert statuses == [200] * 7 + [202]
    assert len(inbox.waiting()) == 1


def test_a_token_is_replaced_without_a_restart(own: Settings, url: str, inbox: Inbox) -> None:
    other = "another-token-of-the-same-length-or-so"
    write_token(own.home, other)
    assert post(url, event())[0] == 401
    assert post(url, event(), token=other)[0] == 202
    write_token(own.home, other, mode=0o644)
    # The receiver reads the tokens once a second.
    time.sleep(1.1)
    status, answer = post(url, event(id="2"), token=other)
    assert (status, answer["next"]) == (503, "send it again later")
    write_token(own.home, other)
    assert post(url, event(id="2"), token=other)[0] == 202
    assert len(inbox.waiting()) == 2


def test_unknown_clients_do_not_have_the_tokens_read_all_the_time(own: Settings) -> None:
    known = event_tokens.Tokens(own)
    before = known()
    write_token(own.home, "another-token-of-the-same-length-or-so")
    assert all(known() == before for _ in range(100))
    time.sleep(1.1)
    assert known() != before


def test_an_unusable_inbox_has_the_sender_retry(own: Settings, url: str, inbox: Inbox) -> None:
    inbox.path.write_bytes(b"damaged, and long enough to be taken for what it is" * 10)
    assert post(url, event())[0] == 503
    inbox.path.unlink()
    assert post(url, event())[0] == 202
    assert "unavailable" in event_service.log_file(own).read_text(encoding="utf-8")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_before_the_answer_is_one_event(own: Settings, inbox: Inbox, moment: str) -> None:
    environment = {**os.environ, "BLOGDATA_HOME": str(own.home)}
    with subprocess.Popen([sys.executable, "-c", DYING, moment], env=environment) as dying:
        address, body = f"http://127.0.0.1:{own.events.port}/events", event()
        deadline = time.monotonic() + 60
        while processes.port_is_free(own.events.port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(OSError):
            post(address, body)
        assert dying.wait(60) == -signal.SIGKILL
    assert len(inbox.waiting()) == (1 if moment == "after" else 0)
    event_service.up(own, COMMAND)
    assert post(address, body)[0] == (200 if moment == "after" else 202)
    assert [entry.run_key for entry in inbox.waiting()] == ["shop/release-42"]


def test_the_service_is_found_stopped_and_restarted(own: Settings, url: str) -> None:
    first = event_service.status(own)
    assert event_service.up(own, COMMAND) == first, "it is found running"
    kill(processes.identify(first.pid or 0))
    assert event_service.status(own).state == "dead"
    second = event_service.up(own, COMMAND)
    assert (second.state, second.pid == first.pid) == ("running", False)
    assert {finding.ok for finding in doctor.examine(own) if finding.name.startswith("events")} == {True}
    assert event_service.stop(own)
    assert not event_service.stop(own)
    assert event_service.status(own).state == "stopped"


def test_changed_settings_restart_the_service(own: Settings, url: str) -> None:
    before = event_service.status(own).pid
    file = own.home / "blogdata.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('name = "shop"', 'name = "store"'), encoding="utf-8")
    changed = config.load(overrides={"BLOGDATA_HOME": str(own.home)})
    assert event_service.up(changed, COMMAND).pid != before
    assert post(url, event(source="store"))[0] == 202


def test_a_taken_port_is_reported(own: Settings) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", own.events.port))
        with pytest.raises(event_service.ReceiverFailed, match=r"port \d+ of 127.0.0.1 cannot be used"):
            event_service.up(own, COMMAND)
    assert event_service.status(own).state == "stopped"


@pytest.mark.parametrize(
    ("token", "mode", "message"),
    [("short", 0o600, "fewer than 32"), (TOKEN, 0o644, "readable by others"), ("", 0o600, "is empty")],
)
def test_a_receiver_with_an_unusable_token_ends(own: Settings, token: str, mode: int, message: str) -> None:
    write_token(own.home, token, mode)
    with pytest.raises(event_service.ReceiverFailed, match=message):
        event_service.up(own, COMMAND)
    with pytest.raises(ConfigurationError, match=message):
        event_tokens.read(own)


def test_without_a_calling_sender_nothing_runs(own: Settings, url: str) -> None:
    (own.home / "blogdata.toml").unlink()
    left = config.load(overrides={"BLOGDATA_HOME": str(own.home)})
    assert event_service.status(left).state == "running", "it still knows the senders of its start"
    found = event_service.up(left, COMMAND)
    assert (found.state, found.pid) == ("off", None)
    with pytest.raises(OSError):
        post(url, event())
    assert not [finding for finding in doctor.examine(left) if finding.name == "events"]
