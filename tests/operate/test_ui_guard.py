"""Only the owner can act through Dagster's web server: no other user and no foreign page."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from blogdata.cli import event_route
from blogdata.landing import external_trigger
from blogdata.operate import dagster_home, secrets, ui_guard
from guarded import Answer, Guarded, serving

WEEK = "2026-01-05"
LAUNCH = (
    'mutation { launchRun(executionParams: { selector: { repositoryLocationName: "analytics", repositoryName: '
    '"__repository__", jobName: "newsletter" }, runConfigData: {}, executionMetadata: { tags: [{ key: '
    f'"dagster/partition", value: "{WEEK}" }}] }} }}) {{ __typename }} }}'
)
IN_QUERY = f"/graphql?query={quote(LAUNCH)}"
JSON = {"content_type": "application/json"}
UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec_websocket_version": "13",
    "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec_websocket_protocol": "graphql-ws",
}
Attack = Callable[[Guarded], Answer]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


ATTACKS: dict[str, tuple[Attack, int]] = {
    "a mutation by GET": (lambda at: at.ask("GET", IN_QUERY), 405),
    "a mutation by POST": (lambda at: at.graphql(LAUNCH), 401),
    "a wrong token": (lambda at: at.graphql(LAUNCH, {}, authorization="Bearer " + "0" * 64), 401),
    "a wrong session": (lambda at: at.graphql(LAUNCH, {}, cookie=f"{ui_guard.COOKIE}={'0' * 64}"), 401),
    "the token as a session": (lambda at: at.graphql(LAUNCH, {}, cookie=f"{ui_guard.COOKIE}={at.token}"), 401),
    "the page": (lambda at: at.ask("GET", "/"), 401),
    "a report of an asset": (lambda at: at.ask("POST", "/report_asset_materialization/a", "{}", **JSON), 401),
    "a web socket": (lambda at: at.ask("GET", "/graphql", **UPGRADE), 403),
    "a forged link": (lambda at: at.ask("GET", f"/?link={int(time.time()) + 9}.{'0' * 64}"), 401),
    "a link that is no number": (lambda at: at.ask("GET", "/?link=x.y.z"), 401),
    # In the owner's browser:
    "a foreign page": (lambda at: at.graphql(LAUNCH, {}, origin="http://evil.example", **at.cookie), 403),
    "a page without a name": (lambda at: at.graphql(LAUNCH, {}, origin="null", **at.cookie), 403),
    "a page of a name that begins like ours": (
        lambda at: at.graphql(LAUNCH, {}, origin=f"http://127.0.0.1:{at.port}.evil.example", **at.cookie),
        403,
    ),
    "a foreign name of our address, which has no cookie": (
        lambda at: at.graphql(LAUNCH, {}, host="evil.example", origin="http://evil.example"),
        401,
    ),
    "an image": (lambda at: at.ask("GET", IN_QUERY, **at.cookie), 405),
    "a path with a line feed": (lambda at: at.ask("GET", IN_QUERY.replace("?", "%0A?"), **at.cookie), 405),
    "an encoded path": (lambda at: at.ask("GET", IN_QUERY.replace("graphql", "%67raphql"), **at.cookie), 405),
    "a form": (
        lambda at: at.ask(
            "POST", IN_QUERY, "", content_type="application/x-www-form-urlencoded", origin="null", **at.cookie
        ),
        403,
    ),
    "a web socket of a foreign page": (
        lambda at: at.ask("GET", "/graphql", origin="http://evil.example", **UPGRADE, **at.cookie),
        403,
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_stranger_and_a_foreign_page_are_refused(served: Guarded, attack: str) -> None:
    send, status = ATTACKS[attack]
    assert send(served).status == status
    assert not served.instance.get_runs()


def test_another_user_reaches_neither_token_nor_code_server(served: Guarded) -> None:
    assert served.ask("GET", "/healthz").text == "not ok\n", "the health check is public"
    token = served.settings.home / "secrets" / dagster_home.UI_TOKEN
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert [stat.S_IMODE(path.stat().st_mode) for path in (served.sockets, token.parent)] == [0o700, 0o700]
    assert len(list(served.sockets.iterdir())) == 2, "the code server and its child"


def test_a_link_signs_in_for_ten_minutes(served: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    link = ui_guard.sign_in_link("", served.token)
    answer = served.ask("GET", link)
    assert (answer.status, served.token in answer.text + str(answer.headers)) == (200, False)
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {*cookie.split("; ")}
    page = served.ask("GET", "/", cookie=cookie.partition(";")[0])
    assert (page.status, page.headers["x-frame-options"]) == (200, "SAMEORIGIN")
    now = time.time()
    monkeypatch.setattr("blogdata.operate.ui_guard.time.time", lambda: now + ui_guard.LINK_SECONDS + 1)
    late = served.ask("GET", link)
    assert (late.status, "blogdata ui --open" in late.text, "set-cookie" in late.headers) == (401, True, False)


@pytest.mark.parametrize("by", ["bearer", "cookie", "proxy"])
def test_the_owner_launches(served: Guarded, by: str) -> None:
    name = "blog.example.com" if by == "proxy" else f"127.0.0.1:{served.port}"
    sent: dict[str, Any] = served.bearer if by == "bearer" else {**served.cookie, "origin": f"https://{name}"}
    before = len(served.instance.get_runs())
    answer = served.graphql(LAUNCH, {}, host=name, **sent)
    assert (answer.status, json.loads(answer.text)["data"]["launchRun"]["__typename"]) == (200, "LaunchRunSuccess")
    assert len(served.instance.get_runs()) == before + 1
    assert served.ask("GET", "/graphql", host=name, **UPGRADE, **sent).status == 101


def test_the_token_for_events_sends_events_and_nothing_else(served: Guarded) -> None:
    token = secrets.read(served.settings, event_route.TOKEN).reveal()
    sender = {"authorization": f"Bearer {token}"}
    event = json.dumps({"id": "1", "source": "shop", "time": "2026-01-05T10:00:00Z", "datasets": ["bronze.devices"]})
    assert served.ask("POST", event_route.PATH, event, **sender).status == 202
    (file,) = external_trigger.waiting(served.settings.landing)
    assert json.loads(file.read_text(encoding="utf-8"))["id"] == "1"
    assert served.ask("POST", event_route.PATH, event, **served.bearer).status == 401
    assert served.ask("GET", event_route.PATH, **sender).status == 401
    assert served.ask("GET", "/", **sender).status == 401
    assert served.graphql("{ version }", {}, **sender).status == 401
