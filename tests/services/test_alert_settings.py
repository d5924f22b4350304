"""The tables [[alerts]] become channels; unusable ones are refused, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.services import config

PRIVATE = "hunter2hunter2"


def load(home: Path, text: str) -> config.Settings:
    (home / "blogdata.toml").write_text(text, encoding="utf-8")
    return config.load({"BLOGDATA_HOME": str(home)})


@pytest.mark.parametrize(
    ("table", "what", "step"),
    [
        ('channel = "mail"', "a channel has no setting channel", "slack://"),
        ('address = "slack://x"', "the name of a channel", "on-call"),
        ('name = "a b"\naddress = "slack://x"', "the name of a channel", "on-call"),
        ('name = "first"\naddress = "slack://x"', "two channels are called first", "otherwise"),
        ('name = "a"', "not an address of Apprise", "slack://"),
        ('name = "a"\naddress = "{secret}"', "not an address of Apprise", "slack://"),
        ('name = "a"\naddress = "json://[h"', "not an address of Apprise", "slack://"),
        (f'name = "a"\naddress = "jsons://u:{PRIVATE}@h"', "the address has a password", "secret ="),
        ('name = "a"\naddress = "slack://{secret}"', "{secret} in its address", "secret ="),
        ('name = "a"\naddress = "slack://x"\nsecret = "s"', "{secret} in its address", "secret ="),
        ('name = "a"\naddress = "json://h/{secret}"\nsecret = "s"', "without TLS: jsons://", "secret ="),
        ('name = "a"\naddress = "slack://{secret}"\nsecret = "../x"', "letters, digits", "secret ="),
        ('name = "a"\naddress = "slack://x"\nleast_severity = "high"', "'high' is not a value", "warning, critical"),
        ('name = "a"\naddress = "slack://x"\nowners = [1]', "owners is not a list of texts", "owners ="),
    ],
)
def test_an_unusable_channel_is_refused(tmp_path: Path, table: str, what: str, step: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, f'[[alerts]]\nname = "first"\naddress = "json://h"\n[[alerts]]\n{table}\n')
    assert what in caught.value.what
    assert step in caught.value.next_step
    assert "blogdata.toml, [[alerts]] number 2" in caught.value.where
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[alerts]\nname = "a"', "tables of their own"),
        ('alerts = "log"', "tables of their own"),
        ('[alerting]\nrepeat_after = "5s"', "'5s' is not a duration"),
        ("[alerting]\nname = 1", "name is not a text"),
        ('[alerting]\ngroup = "owner"', "Unknown setting 'group'"),
    ],
)
def test_a_wrong_alerting_setting_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert what in caught.value.what
