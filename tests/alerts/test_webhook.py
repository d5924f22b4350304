"""A web server gets each message once; its status code and Retry-After decide about further attempts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from alert_servers import Posted
from blogdata.alerts.alert import Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.alerts.sending import Route
from blogdata.alerts.service import Service
from blogdata.alerts.webhook import Webhook

SECRET = "T0K3N/with-a secret"


@pytest.fixture
def message(alert: Any) -> Message:
    """Build a message with one alert."""
    return Message(identity="0f", deployment="production", begun=(alert(),))


def test_a_webhook_gets_the_message_and_token(hook: Posted, message: Message) -> None:
    webhook = Webhook(address=hook.address, token="T0K3N")
    webhook.check(5)
    webhook.send(message, 5)
    (body,), (headers,) = hook.bodies, hook.headers
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer T0K3N", "application/json")
    assert (body["id"], body["deployment"], body["severity"]) == ("0f", "production", "critical")
    assert body["alerts"][0] == {
        "state": "new",
        "identity": "waiting/silver.visits/2026-01-05T03",
        "severity": "critical",
        "owner": "team:analytics",
        "title": "waiting/silver.visits/2026-01-05T03",
        "text": "an hour waits",
        "next_step": "look at it",
    }
    assert "T0K3N" not in repr(webhook)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(hook: Posted, message: Message, status: int) -> None:
    hook.answers = [(status, {}), (status, {})]
    Webhook(address=hook.address).send(message, 20)
    assert (len(hook.headers), len(hook.bodies)) == (3, 1)
    assert len({headers["Idempotency-Key"] for headers in hook.headers}) == 1


def test_the_server_says_when_to_come_back(hook: Posted, message: Message) -> None:
    hook.answers = [(429, {"Retry-After": "1"})]
    began = time.monotonic()
    Webhook(address=hook.address).send(message, 20)
    assert time.monotonic() - began >= 1
    hook.answers = [(503, {"Retry-After": "3600"})]
    with pytest.raises(ChannelFailed, match="503"):
        Webhook(address=hook.address).send(message, 20)


@pytest.mark.parametrize(("status", "refused"), [(400, True), (401, False), (404, False), (413, True), (302, False)])
def test_a_refusal_is_final(hook: Posted, message: Message, status: int, refused: bool) -> None:
    hook.answers = [(status, {"Location": hook.address})]
    with pytest.raises(ChannelFailed, match=str(status)) as caught:
        Webhook(address=hook.address).send(message, 20)
    assert (len(hook.headers), caught.value.refused) == (1, refused)


def test_a_hanging_server_ends_in_time(hook: Posted, message: Message) -> None:
    hook.hangs_seconds = 5.0
    began = time.monotonic()
    with pytest.raises(ChannelFailed, match="timed out"):
        Webhook(address=hook.address).send(message, 0.3)
    assert time.monotonic() - began < 5


def test_no_server_is_a_problem(message: Message) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = Webhook(address=f"http://127.0.0.1:{taken.getsockname()[1]}/")
        uses: tuple[Callable[[], object], ...] = (lambda: nobody.send(message, 0.2), lambda: nobody.check(0.2))
        for use in uses:
            with pytest.raises(ChannelFailed, match="refused"):
                use()


def test_a_secret_address_is_never_shown(tick: Any, alert: Any, caplog: Any, capfd: Any) -> None:
    routes = [
        Route(name=name, channel=channel, secrets=(SECRET,), seconds=0.3)
        for name, channel in (
            ("odd", Webhook(address=f"http://127.0.0.1:1/{SECRET}\n")),
            ("bad", Webhook(address=f"http://[{SECRET}/x")),
            ("unknown", Service(address=f"nosuch://{SECRET}")),
            ("unreachable", Service(address="json://127.0.0.1:1/T0K3N%2Fwith-a%20secret")),
        )
    ]
    done = tick([alert()], routes)
    assert [one.channel for one in done.failures] == ["odd", "bad", "unknown", "unreachable"]
    shown = f"{done} {routes} {[str(one.error) for one in done.failures]} {caplog.text} {capfd.readouterr()}"
    assert "T0K3N" not in shown


def test_a_service_gets_no_mentions_and_no_excess(hook: Posted, alert: Any) -> None:
    hostile = "<!channel> @everyone mail@example.org <@U012> "
    alerts = tuple(alert(f"{number}", text=hostile * 20, next_step=hostile * 20) for number in range(30))
    message = Message(identity="0f", begun=alerts, standing=alerts, ended=alerts)
    assert len(message.text) > 64_000
    Service(address=hook.address.replace("http://", "json://")).send(message, 20)
    (body,) = hook.bodies
    assert len(body["message"]) <= 32_768
    assert "< !channel> @ everyone mail@example.org < @U012>" in body["message"]
    assert not [mention for mention in ("<!", "@everyone", "<@") if mention in body["message"]]


def test_apprise_reaches_other_services(hook: Posted, message: Message) -> None:
    service = Service(address=hook.address.replace("http://", "json://"))
    service.check(5)
    service.send(message, 5)
    (body,) = hook.bodies
    assert (body["title"], body["type"]) == (message.subject, "failure")
    assert "look at it" in body["message"]
    hook.answers = [(500, {})]
    with pytest.raises(ChannelFailed, match="did not take it"):
        service.send(message, 5)
