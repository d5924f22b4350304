"""Mails reach a real server: encrypted, after a login, as plain text that cannot forge headers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alert_servers import PASSWORD, USER, Mailbox, mail_server
from blogdata.alerts.alert import Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.alerts.mail import Mail
from blogdata.alerts.sending import Route

HOSTILE = "gold.pages\r\nBcc: victim@example.org\r\n\r\n<script>alert(1)</script>\x1b[31m\u202e\udcff"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mailbox]:
    """A server that requires STARTTLS and a login."""
    with mail_server(certified_in=tmp_path_factory.mktemp("certificate")) as mailbox:
        yield mailbox


@pytest.fixture
def plain() -> Iterator[Mailbox]:
    """A server without TLS."""
    with mail_server() as mailbox:
        yield mailbox


def mail(mailbox: Mailbox, *, user: str = "", **given: Any) -> Mail:
    """The channel to a server."""
    usual = {"sender": "robot@example.org", "to": ("team@example.org",), "ca_file": mailbox.certificate}
    return Mail(address=f"smtp://{user}127.0.0.1:{mailbox.port}", **{**usual, **given})


def message(alert: Any, **given: Any) -> Message:
    return Message(identity="0f", begun=(alert(**given),))


def test_a_mail_is_encrypted_and_logged_in(secure: Mailbox, alert: Any) -> None:
    channel = mail(secure, user=f"{USER}@", password=PASSWORD, to=("a@example.org", "b@example.org"))
    channel.check(10)
    assert secure.mails == []
    channel.send(message(alert, title="silver.visits 2026-01-05T03: waiting"), 10)
    got = secure.mails.pop()
    assert got["Subject"] == "[critical] silver.visits 2026-01-05T03: waiting"
    assert (got["To"], got["Message-ID"]) == ("a@example.org, b@example.org", "<0f@alerts.invalid>")
    assert (got["Auto-Submitted"], got.get_content_type()) == ("auto-generated", "text/plain")
    assert "next:  look at it" in got.get_content()
    assert secure.logins[-1] == USER


def test_a_wrong_password_is_not_shown(secure: Mailbox, alert: Any, tick: Any) -> None:
    wrong = "wrong but private"
    channel = mail(secure, user=f"{USER}@", password=wrong)
    with pytest.raises(ChannelFailed, match="refuses the login") as caught:
        channel.check(10)
    done = tick([alert()], [Route(name="mail", channel=channel, secrets=(wrong,))])
    assert wrong not in f"{caught.value} {done} {channel} {done.failures[0].error}"


def test_an_unknown_certificate_is_refused(secure: Mailbox, alert: Any) -> None:
    with pytest.raises(ChannelFailed, match="CERTIFICATE_VERIFY_FAILED"):
        mail(secure, user=f"{USER}@", password=PASSWORD, ca_file=None).send(message(alert), 10)


def test_no_mail_is_sent_without_promised_tls(plain: Mailbox, alert: Any) -> None:
    with pytest.raises(ChannelFailed, match="STARTTLS"):
        mail(plain).send(message(alert), 10)
    assert plain.mails == []


def test_hostile_text_forges_no_header(plain: Mailbox, alert: Any) -> None:
    hostile = dict.fromkeys(("identity", "owner", "title", "text", "next_step"), HOSTILE)
    mail(plain, encrypted=False).send(message(alert, **hostile), 10)
    (got,) = plain.mails
    assert (plain.receivers, got["Bcc"]) == ([["team@example.org"]], None)
    clean = "gold.pages Bcc: victim@example.org <script>alert(1)</script> [31m"
    assert got["Subject"] == f"[critical] {clean}"
    assert (got.get_content_type(), got.get_content().count(clean)) == ("text/plain", 4)


def test_refused_receivers_are_a_problem(plain: Mailbox, alert: Any) -> None:
    plain.refused.add("gone@example.org")
    channel = mail(plain, encrypted=False, to=("team@example.org", "gone@example.org"))
    with pytest.raises(ChannelFailed, match=r"some of the receivers: gone@example\.org") as caught:
        channel.send(message(alert), 10)
    assert (caught.value.taken, plain.receivers) == (True, [["team@example.org"]])
    with pytest.raises(ChannelFailed, match="no such user") as none:
        mail(plain, encrypted=False, to=("gone@example.org",)).send(message(alert), 10)
    assert not none.value.taken


def test_a_silent_server_ends_in_time(alert: Any) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(ChannelFailed, match="timed out"):
            mail(Mailbox(port=silent.getsockname()[1])).send(message(alert), 0.3)


def test_a_mail_about_a_long_text_arrives(plain: Mailbox, alert: Any, tmp_path: Path) -> None:
    mail(plain, encrypted=False).send(message(alert, title="ü" * 5000, text="ü" * 50_000), 10)
    (got,) = plain.mails
    assert len(got["Subject"]) < 300
    assert got.get_content().count("ü") < 2000
