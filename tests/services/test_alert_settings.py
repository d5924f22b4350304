"""The tables [[alerts]] become channels; unusable ones are refused, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.alerts.mail import Mail
from blogdata.alerts.service import Service
from blogdata.alerts.webhook import Webhook
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.severity import Severity
from blogdata.services import config, deployment_alerts, doctor

WHOLE = """
[alerting]
repeat_after = "4h"
group = "channel"
name = "production"

[[alerts]]
channel = "log"

[[alerts]]
channel = "mail"
name = "on-call"
address = "smtp://robot@mail.example.org:587"
from = "robot@example.org"
to = ["a@example.org", "b@example.org"]
secret = "smtp"
least_severity = "critical"
owners = ["team:analytics"]

[[alerts]]
channel = "webhook"
address = "https://hooks.example.org/{secret}"
secret = "hook"
seconds = 5

[[alerts]]
channel = "service"
address = "ntfy://{secret}@ntfy.example.org/data"
secret = "ntfy"

[[alerts]]
channel = "command"
command = ["page-me", "--now"]
"""
PRIVATE = "hunter2hunter2"


def load(home: Path, text: str) -> config.Settings:
    (home / "blogdata.toml").write_text(text, encoding="utf-8")
    return config.load({"BLOGDATA_HOME": str(home)})


def secret(home: Path, name: str, content: str = PRIVATE, mode: int = 0o600) -> None:
    file = home / "secrets" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    file.chmod(mode)


def test_tables_become_channels(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE)
    for name in ("smtp", "hook", "ntfy"):
        secret(tmp_path, name)
    policy = settings.alerts.policy
    assert (policy.repeat_after, policy.group, policy.deployment) == (4 * 3600, "channel", "production")
    routes = {route.name: route for route in deployment_alerts.routes(settings)}
    assert list(routes) == ["log", "on-call", "webhook", "service", "command"]
    on_call, mail = routes["on-call"], routes["on-call"].channel
    assert (on_call.least, on_call.owners) == (Severity.CRITICAL, ("team:analytics",))
    assert isinstance(mail, Mail)
    assert (mail.password, mail.to, mail.encrypted) == (PRIVATE, ("a@example.org", "b@example.org"), True)
    hook, service = routes["webhook"].channel, routes["service"].channel
    assert isinstance(hook, Webhook)
    assert isinstance(service, Service)
    assert (hook.address, hook.token) == (f"https://hooks.example.org/{PRIVATE}", None)
    assert service.address == f"ntfy://{PRIVATE}@ntfy.example.org/data"
    assert PRIVATE not in f"{settings} {routes}"


def test_without_tables_nobody_is_told(tmp_path: Path) -> None:
    settings = load(tmp_path, "[spark]\nport = 0\n")
    assert (settings.alerts.channels, deployment_alerts.routes(settings)) == ((), [])


MAIL = 'channel = "mail"\naddress = "smtp://mail.example.org"\nfrom = "a@b.org"\nto = ["c@d.org"]\n'


@pytest.mark.parametrize(
    ("table", "what", "step"),
    [
        ("", "does not say which channel", "log, command, mail, webhook, service"),
        ('channel = "pigeon"', "'pigeon' is not a value of channel", "log, command, mail"),
        ('channel = "log"\naddress = "x"', "a channel 'log' has no setting address", "least_severity"),
        ('channel = "command"', "a channel 'command' needs command", "command = ["),
        ('channel = "command"\ncommand = "page-me"', "command is not a list of texts", '["...", "..."]'),
        ('channel = "webhook"\naddress = "hooks"', "not the address of a webhook server", "https://"),
        ('channel = "webhook"\naddress = "https://h:99999/"', "not the address of a webhook server", "https://"),
        ('channel = "webhook"\naddress = "ftp://h/x"', "not the address of a webhook server", "https://"),
        (f'channel = "webhook"\naddress = "https://u:{PRIVATE}@h"', "the address has a password", "secret ="),
        ('channel = "webhook"\naddress = "http://h/{secret}"', "the channel no secret", 'secret = "name"'),
        ('channel = "webhook"\naddress = "http://h/"\nsecret = "s"', "not sent without TLS", "https://"),
        ('channel = "service"', "a channel 'service' needs address", "slack://"),
        ('channel = "log"\nleast_severity = "high"', "'high' is not a value of least_severity", "warning, critical"),
        ('channel = "log"\nseconds = 600', "600 is not a number", "from 1 to 40"),
        ('channel = "log"\nname = "a b"', "letters, digits", "analytics-mail"),
        ('channel = "log"\nowners = [1]', "owners is not a list of texts", "owners ="),
        ('channel = "webhook"\naddress = "https://h/"\nsecret = "../x/y"', "letters, digits", "secret ="),
        (MAIL.replace("smtp:", "imap:"), "not the address of a mail server", "smtp://"),
        (MAIL.replace("a@b.org", "nobody"), "'nobody' is not a mail address", "team@example.org"),
        (MAIL.replace("c@d.org", "c@d.org\\nBcc: x@y.org"), "is not a mail address", "team@example.org"),
        (MAIL.replace('to = ["c@d.org"]', ""), "a channel 'mail' needs to", "to = ["),
        (MAIL + 'secret = "s"', "a password and no user", "smtp://robot@"),
        (MAIL + 'secret = "s"\ntls = "none"', "not sent without TLS", "tls"),
        (MAIL.replace("mail.example", "{secret}.example"), "is its password", "smtp://robot@"),
    ],
)
def test_an_unusable_channel_is_refused(tmp_path: Path, table: str, what: str, step: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, f'[[alerts]]\nchannel = "log"\nname = "first"\n[[alerts]]\n{table}\n')
    assert what in caught.value.what
    assert step in caught.value.next_step
    assert "blogdata.toml, [[alerts]] number 2" in caught.value.where
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[alerts]\nchannel = "log"', "tables of their own"),
        ('alerts = "log"', "tables of their own"),
        ('[[alerts]]\nchannel = "log"\n[[alerts]]\nchannel = "log"', "two channels are called log"),
        ('[alerting]\nrepeat_after = "soon"', "'soon' is not a duration"),
        ('[alerting]\nrepeat_after = "5s"', "'5s' is not a duration"),
        ('[alerting]\ngroup = "all"', "'all' is not a value of group"),
        ("[alerting]\nname = 1", "name is not a text"),
        ('[alerting]\nrepeat = "1d"', "Unknown setting 'repeat'"),
    ],
)
def test_a_wrong_alerting_setting_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("content", "mode", "what"),
    [
        (None, 0, "the secret hook does not exist"),
        (PRIVATE, 0o644, "readable by others"),
        ("", 0o600, "empty or has several lines"),
        (f"{PRIVATE}\nX-Forged: 1", 0o600, "empty or has several lines"),
    ],
)
def test_an_unusable_secret_stops_only_its_channel(tmp_path: Path, content: str | None, mode: int, what: str) -> None:
    settings = load(
        tmp_path,
        '[[alerts]]\nchannel = "webhook"\naddress = "https://hooks.example.org/{secret}"\nsecret = "hook"\n'
        '[[alerts]]\nchannel = "log"\n',
    )
    if content is not None:
        secret(tmp_path, "hook", content, mode)
    hook, log = deployment_alerts.routes(settings)
    assert isinstance(hook.channel, PlatformError)
    assert what in hook.channel.what
    assert not isinstance(log.channel, PlatformError)
    found = {finding.name: finding for finding in doctor.examine(settings)}
    assert (found["alerts webhook"].ok, found["alerts log"].ok) == (False, True)
    assert what in found["alerts webhook"].detail
    assert found["alerts webhook"].next_step.endswith("then try it: blogdata alerts --test")
    assert PRIVATE not in str(hook)
