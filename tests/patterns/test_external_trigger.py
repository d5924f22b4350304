import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from blogdata.cli import event_route
from blogdata.landing.external_trigger import MOST_BYTES, EventRefused, parse, read, waiting

TOKEN = "t0ken-of-the-senders-that-nobody-else-has"
DATASETS = ("raw.items", "raw.ads")
EVENT = {"id": "42", "source": "shop", "time": "2026-01-05T09:59:00Z", "datasets": ["raw.items"]}

DYING = """
import os, signal, socket, sys
from pathlib import Path
import uvicorn
from blogdata.cli import event_route as module
kept = module.keep
def dies(event, landing):
    if sys.argv[1] == "after":
        kept(event, landing)
    os.kill(os.getpid(), signal.SIGKILL)
module.keep = dies
app = module.route(Path(sys.argv[2]), sys.argv[3], ["raw.items"])
server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning"))
server.run(sockets=[socket.socket(fileno=int(sys.argv[4]))])
"""
"""A server whose process is killed before or after an event is on the disk, and never answers."""


def event(**changes: Any) -> bytes:
    """Build an event; a change to None omits the field."""
    return json.dumps({name: value for name, value in {**EVENT, **changes}.items() if value is not None}).encode()


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server with the route; a body has half a second."""
    monkeypatch.setattr(event_route, "_SECONDS", 0.5)
    listener = socket.create_server(("127.0.0.1", 0))
    app = event_route.route(tmp_path, TOKEN, DATASETS)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()


def call(port: int, body: bytes | None, *, token: str | None = TOKEN, **headers: str) -> tuple[int, dict[str, Any]]:
    """Call as a sender; return the status and content of the answer. A body of None is promised and never sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    sent = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        if body is None:
            headers["Content-Length"] = "60000"
        connection.request("POST", "/events", body, {**sent, **headers})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def ids(landing: Path) -> list[str]:
    return [read(file, DATASETS).id for file in waiting(landing)]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "Invalid JSON"),
        (b"[" * 60_000, "recursion limit"),
        (b" " * (MOST_BYTES + 1), "more than 65536 bytes"),
        (event(id="42\n"), "id: "),
        (event(source="../shop"), "source: "),
        (event(time="2026-01-05T09:59:00"), "timezone"),
        (event(payload="a\nb"), "payload: "),
        (event(payload="ä" * 1001), "at most 2000 bytes"),
        (event(datasets=["raw.items"] * 101), "datasets: "),
        (event(datasets=["raw.item"]), "no dataset is called raw.item"),
        (event(command="rm -rf /"), "command: Extra inputs"),
    ],
)
def test_what_is_no_event_is_refused_with_its_reason(body: bytes, problem: str) -> None:
    with pytest.raises(EventRefused) as refused:
        parse(body, DATASETS)
    assert problem in refused.value.what
    assert "\n" not in refused.value.what


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_json_is_an_event_or_refused(value: Any) -> None:
    for body in (value, *({**EVENT, name: value} for name in (*EVENT, "payload"))):
        try:
            parsed = parse(json.dumps(body).encode(), DATASETS)
        except EventRefused:
            continue
        assert parse(parsed.model_dump_json().encode(), DATASETS) == parsed


def test_a_call_is_answered_by_what_it_sends(tmp_path: Path, port: int) -> None:
    assert call(port, event()) == (202, {"event": "shop/42"})
    assert call(port, event()) == (202, {"event": "shop/42"}), "a repeated one is the same file"
    status, answer = call(port, event(datasets=["raw.item"]))
    assert (status, answer["error"]) == (400, "no dataset is called raw.item")
    assert answer["next"].startswith("did you mean raw.items?")
    assert call(port, b"x" * 10 * MOST_BYTES)[0] == 413
    assert call(port, None)[0] == 408, "the body never comes"
    for token in (None, "", TOKEN[:-1], f"{TOKEN}x", "ä" * 41):
        assert call(port, None, token=token)[0] == 401, "answered before any byte of the body was sent"
    assert ids(tmp_path) == ["42"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_before_the_answer_is_one_event(tmp_path: Path, port: int, moment: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd = listener.fileno()
        words = [sys.executable, "-c", DYING, moment, str(tmp_path), TOKEN, str(fd)]
        with subprocess.Popen(words, pass_fds=[fd]) as dying:
            with pytest.raises(OSError):
                call(listener.getsockname()[1], event())
            assert dying.wait(60) == -signal.SIGKILL
    assert ids(tmp_path) == (["42"] if moment == "after" else [])
    assert call(port, event())[0] == 202, "the sender repeats what was not answered"
    assert ids(tmp_path) == ["42"]
