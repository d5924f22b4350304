"""Who is signed in to look sees every page of Dagster's UI, and starts and changes nothing, whatever they send."""

from __future__ import annotations

import base64
import json
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from blogdata.services import dagster_home, ui_guard
from blogdata.services.ui_viewer import changes_nothing
from guarded import Answer, Guarded, serving
from lineage.command_line import Said

LAUNCH = (
    'mutation Launch { launchRun(executionParams: { selector: { repositoryLocationName: "analytics", repositoryName: '
    '"__repository__", jobName: "newsletter" }, runConfigData: {}, executionMetadata: { tags: [{ key: '
    '"dagster/partition", value: "2026-01-05" }] } }) { __typename } }'
)
LOOK = "query Look { version }"
JSON = {"content_type": "application/json"}
TICKS = 'subscription { pipelineRunLogs(runId: "none") { __typename } }'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


def bearer(at: Guarded) -> dict[str, str]:
    return {"authorization": f"Bearer {at.viewer}"}


def cookie(at: Guarded) -> dict[str, str]:
    link = ui_guard.sign_in_link("", at.viewer)
    return {"cookie": at.ask("GET", link).headers["set-cookie"].partition(";")[0]}


def post(at: Guarded, body: str, path: str = "/graphql") -> Answer:
    return at.ask("POST", path, body, **JSON, **bearer(at))


CHANGES: dict[str, Callable[[Guarded], Answer]] = {
    "a mutation": lambda at: at.graphql(LAUNCH, {}, **bearer(at)),
    "a mutation with the session of a link": lambda at: at.graphql(LAUNCH, {}, **cookie(at)),
    "a mutation beside a query": lambda at: post(
        at, json.dumps({"query": f"{LOOK} {LAUNCH}", "operationName": "Launch"})
    ),
    "a mutation beside the query that is asked for": lambda at: post(
        at, json.dumps({"query": f"{LAUNCH} {LOOK}", "operationName": "Look"})
    ),
    "a mutation behind a comment and a mark of bytes": lambda at: at.graphql(
        f"\ufeff# query {{ version }}\n,,{LAUNCH}", {}, **bearer(at)
    ),
    "a mutation in escapes": lambda at: post(at, json.dumps({"query": LAUNCH}).replace("mutation", "\\u006dutation")),
    "a mutation as the second value of a name": lambda at: post(
        at, f'{{"query": {json.dumps(LOOK)}, "query": {json.dumps(LAUNCH)}}}'
    ),
    "a mutation in a list": lambda at: post(at, json.dumps([{"query": LAUNCH}])),
    "a mutation in the address": lambda at: post(at, "{}", f"/graphql?query={LAUNCH.replace(' ', '%20')}"),
    "another path that is the same": lambda at: post(at, json.dumps({"query": LAUNCH}), "/graphql/"),
    "what is no GraphQL": lambda at: at.graphql("mutation {", {}, **bearer(at)),
    "GraphQL that nests without an end": lambda at: at.graphql("{a" * 100_000, {}, **bearer(at)),
    "what is no JSON": lambda at: post(at, "{"),
    "no body": lambda at: post(at, ""),
    "a body that is too large": lambda at: post(at, json.dumps({"query": LOOK, "variables": {"a": "x" * 4_000_000}})),
    "a report of an asset": lambda at: post(at, "{}", "/report_asset_materialization/a"),
    "a report of a check": lambda at: post(at, "{}", "/report_asset_check/a"),
    "a report of an observation": lambda at: post(at, "{}", "/report_asset_observation/a"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_who_looks_starts_and_changes_nothing(served: Guarded, change: str) -> None:
    assert CHANGES[change](served).status == 403
    assert not served.instance.get_runs()
    assert not served.instance.all_asset_keys()


def test_who_looks_sees_the_pages(served: Guarded) -> None:
    for way in (bearer(served), cookie(served)):
        assert served.ask("GET", "/", **way).status == 200
        assert json.loads(served.graphql(LOOK, {}, **way).text)["data"]["version"]
    page = json.loads(
        post(served, json.dumps({"query": "query A { version } query B { __typename }", "operationName": "B"})).text
    )
    assert page == {"data": {"__typename": "Query"}}


def test_pages_know_who_may_start_runs(served: Guarded) -> None:
    """Dagster itself has the right of each request: its pages offer no button that would be refused."""
    asked = "{ permissions { permission value } }"
    found = {
        name: {each["permission"]: each["value"] for each in json.loads(answer.text)["data"]["permissions"]}
        for name, answer in {
            "owner": served.graphql(asked, {}, **served.bearer),
            "viewer": served.graphql(asked, {}, **bearer(served)),
        }.items()
    }
    assert found["owner"]["launch_pipeline_execution"]
    assert not any(found["viewer"].values())


def test_neither_token_is_the_other(served: Guarded) -> None:
    assert served.viewer != served.token
    other = served.settings.home / "secrets" / dagster_home.UI_VIEWER
    assert stat.S_IMODE(other.stat().st_mode) == 0o600
    assert cookie(served) != served.cookie
    answer = served.graphql(LAUNCH, {}, **served.bearer)
    assert json.loads(answer.text)["data"]["launchRun"]["__typename"] == "LaunchRunSuccess"
    served.instance.delete_run(served.instance.get_runs()[0].run_id)


def test_the_command_prints_a_link_to_look(
    served: Guarded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(served.settings.home))
    said, home = Said(monkeypatch, capsys), dagster_home.render(served.settings)
    assert "is not served" in said("ui", "--viewer")[2]
    with dagster_home.ui_lock(home):
        dagster_home.note_ui_address(home, f"127.0.0.1:{served.port}")
        code, text, _ = said("ui", "--viewer")
        dagster_home.forget_ui_address(home)
    link = text.replace("\n", "").partition(served.url)[2]
    assert code == 0
    session = {"cookie": served.ask("GET", link).headers["set-cookie"].partition(";")[0]}
    assert (served.graphql(LOOK, {}, **session).status, served.graphql(LAUNCH, {}, **session).status) == (200, 403)


def test_a_web_socket_subscribes_and_is_closed_by_a_mutation(served: Guarded) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(_upgrade(served))
        stream = connection.makefile("rb")
        assert b" 101 " in stream.readline()
        while stream.readline() != b"\r\n":
            pass
        _say(connection, {"type": "connection_init"})
        assert json.loads(_heard(stream)[1]) == {"type": "connection_ack"}
        _say(connection, {"type": "start", "id": "1", "payload": {"query": TICKS}})
        assert json.loads(_heard(stream)[1])["id"] == "1"
        _say(connection, {"type": "start", "id": "2", "payload": {"query": LAUNCH}})
        kind, text = _heard(stream)
        while kind == 1:
            assert json.loads(text)["id"] == "1"
            kind, text = _heard(stream)
        assert (kind, struct.unpack(">H", text[:2])[0]) == (8, 1008)
    assert not served.instance.get_runs()


def _upgrade(at: Guarded) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        "GET /graphql HTTP/1.1", f"Host: 127.0.0.1:{at.port}", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: graphql-ws",
        f"Authorization: Bearer {at.viewer}",
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


def _say(connection: socket.socket, message: Any) -> None:
    """Send a frame of text, masked, as clients do (RFC 6455)."""
    text, mask = json.dumps(message).encode(), os.urandom(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
    length = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(text))
    connection.sendall(bytes([0x81]) + length + mask + masked)


def _heard(stream: Any) -> tuple[int, bytes]:
    """Return the kind of the next frame, and what is in it."""
    first, length = stream.read(2)
    if length == 126:
        (length,) = struct.unpack(">H", stream.read(2))
    return first & 0x0F, stream.read(length)


@pytest.mark.parametrize(
    ("document", "looks"),
    [
        (LOOK, True),
        ("{ version }", True),
        (TICKS, True),
        ("fragment F on Mutation { launchRun } query { ...F }", True),
        ("fragment F on Query { version }", False),
        (LAUNCH, False),
        (f"{LOOK} {LAUNCH}", False),
        ("type A { a: Int }", False),
        ("", False),
        (None, False),
        ([LOOK], False),
    ],
)
def test_a_document_is_judged_by_its_operations(document: object, looks: bool) -> None:
    assert changes_nothing(document) is looks
