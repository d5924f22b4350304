from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.services import config
from blogdata.services.event_settings import SenderSettings


def load(home: Path, text: str) -> config.Settings:
    (home / "blogdata.toml").write_text(text, encoding="utf-8")
    return config.load({"BLOGDATA_HOME": str(home)})


def test_without_senders_nothing_is_received(tmp_path: Path) -> None:
    events = config.load({"BLOGDATA_HOME": str(tmp_path)}).events
    assert (events.host, events.port, events.max_age, events.senders) == ("127.0.0.1", 3070, 86_400, ())
    assert not events.received


def test_senders_are_read(tmp_path: Path) -> None:
    events = load(
        tmp_path,
        '[events]\nport = 4000\nmax_age = "2h"\n[[events.senders]]\nname = "shop"\nsecret = "shop-token"\n'
        '[[events.senders]]\nname = "partner"\nfiles = true\ndatasets = ["bronze.users"]\n',
    ).events
    assert (events.port, events.max_age, events.received) == (4000, 7200, True)
    assert events.senders == (
        SenderSettings(name="shop", secret="shop-token"),
        SenderSettings(name="partner", files=True, datasets=("bronze.users",)),
    )


def test_the_environment_overrides_the_address(tmp_path: Path) -> None:
    environ = {"BLOGDATA_HOME": str(tmp_path), "BLOGDATA_EVENTS_HOST": "0.0.0.0", "BLOGDATA_EVENTS_PORT": "4001"}
    events = config.load(environ).events
    assert (events.host, events.port) == ("0.0.0.0", 4001)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[events]\nsenders = "shop"\n', "tables of their own"),
        ('[[events.senders]]\nsecret = "shop"\n', "the name of a sender"),
        ('[[events.senders]]\nname = "a/b"\nsecret = "shop"\n', "the name of a sender"),
        ('[[events.senders]]\nname = "shop"\nsecret = "../shop"\n', "the secret of a sender"),
        ('[[events.senders]]\nname = "shop"\n', "no way to send"),
        ('[[events.senders]]\nname = "shop"\nfiles = "yes"\n', "neither true nor false"),
        ('[[events.senders]]\nname = "shop"\ntoken = "abc"\n', "no setting token"),
        ('[[events.senders]]\nname = "shop"\nfiles = true\n' * 2, "two senders are called shop"),
        ('[events]\nmax_age = "1s"\n', "not a duration"),
        ("[events]\nretry = 1\n", "Unknown setting"),
    ],
)
def test_unusable_settings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path, text)
