from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from alert_servers import web_server
from blogdata.deliver.ordered_delivery import HttpTarget, KeyRefused, Refused
from blogdata.deliver.outbox import Delivery
from blogdata.errors import ConfigurationError
from blogdata.operate import config, secrets
from blogdata.operate.config import Settings
from blogdata.patterns.security.secrets_pointer import Secret, SecretInUse, fetch

CANARY = "canary-5f1f0b6b7b0f4b8e9d2a"


def deployment(home: Path) -> Settings:
    return config.load({"BLOGDATA_HOME": str(home)})


def test_a_secret_is_found_by_its_name_in_all_its_versions(tmp_path: Path) -> None:
    settings = deployment(tmp_path)
    with pytest.raises(ConfigurationError, match="the secret partner does not exist"):
        secrets.given(settings, "partner")
    pointer = secrets.pointer(settings, "partner")
    added = [
        pointer.add(Secret(value), after=after) for value, after in ((f"{CANARY}\n", 0), ("other", 0), ("another", 1))
    ]
    assert added == [True, False, True]
    assert secrets.given(settings, "partner").reveal() == "another"
    assert pointer.versions() == (1, 2)
    assert [fetch(pointer, version).reveal() for version in (1, 2)] == [CANARY, "another"]
    with pytest.raises(ConfigurationError, match="version 3 of the secret partner") as missing:
        fetch(pointer, 3)
    assert "partner" in missing.value.where
    assert CANARY not in str(missing.value)


@pytest.mark.parametrize("show", [str, repr, "{}".format, "{!r:>40}".format, lambda one: f"{[one]} {(one,)}"])
def test_a_secret_does_not_show_itself(show: Callable[[Secret], str]) -> None:
    secret = Secret(CANARY)
    assert CANARY not in show(secret)
    assert "***" in show(secret)


@pytest.mark.parametrize("content", [b"", b"two\nlines", f"{CANARY}\x1b[2J".encode(), CANARY.encode() + b"\xff"])
def test_an_unusable_secret_is_named_and_not_shown(tmp_path: Path, content: bytes) -> None:
    settings = deployment(tmp_path)
    file = tmp_path / "secrets" / "shop"
    file.parent.mkdir(mode=0o700)
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigurationError, match="the secret shop") as unusable:
        secrets.given(settings, "shop")
    assert str(file) in unusable.value.where
    assert CANARY not in f"{unusable.value} {unusable.value.__cause__!r}"


@pytest.mark.parametrize("later", ["new", "old"])
def test_a_replaced_key_is_read_again_while_a_job_runs(tmp_path: Path, later: str) -> None:
    settings = deployment(tmp_path)
    secrets.pointer(settings, "partner").add(Secret("old"), after=0)
    with web_server() as partner:
        key = SecretInUse(secrets.pointer(settings, "partner"))
        (tmp_path / "secrets" / "partner").write_text(later)
        partner.answers = [(401, {}), (422, {})]
        error, said = {"old": (KeyRefused, "the key: status 401"), "new": (Refused, "a request: status 422")}[later]
        target = HttpTarget(partner.address, key=key, timeout=5, record=asdict)
        with target, pytest.raises(error, match=said):
            target.send([Delivery(id="d", key="k", sequence=1, payload="{}")])
        assert [sent["Authorization"] for sent in partner.headers] == [f"Bearer {it}" for it in {"old": 1, later: 2}]
