"""Secrets are named, and their values fetched when they are used: from files, the environment or a server."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from alert_servers import web_server
from blogdata.errors import ConfigurationError, TransientError
from blogdata.patterns.data_value.ordered_delivery import HttpTarget, KeyRefused, Refused
from blogdata.patterns.data_value.outbox import Delivery
from blogdata.secrets.secrets_pointer import Secret, SecretInUse, fetch
from blogdata.services import config, processes, secrets, spark_launch
from blogdata.services.config import Settings
from blogdata.services.java import Java
from blogdata.services.spark_conf import SparkParts
from openbao_server import Bao, openbao

CANARY = "canary-5f1f0b6b7b0f4b8e9d2a"
Store = Callable[[str, str], None]


def deployment(home: Path, section: str = "", **variables: str) -> Settings:
    """Load the settings of a deployment with a section `[secrets]`."""
    home.mkdir(exist_ok=True)
    (home / "blogdata.toml").write_text(f"[secrets]\n{section}\n")
    return config.load({"BLOGDATA_HOME": str(home), **variables})


def in_files(home: Path) -> Iterator[tuple[Settings, Store]]:
    """A deployment with its own files."""
    settings = deployment(home)

    def store(name: str, value: str) -> None:
        there = secrets.files(settings).versions(name)
        assert secrets.files(settings).add(name, Secret(value), after=max(there, default=0))

    yield settings, store


def on_a_server(home: Path) -> Iterator[tuple[Settings, Store]]:
    """A deployment with a server, whose token is in a file."""
    with openbao(tokens={"its token"}) as bao:
        (home / "token").write_text("its token\n")
        (home / "token").chmod(0o600)
        settings = deployment(home, f'provider = "openbao"\naddress = "{bao.address}"\ntoken_file = "token"')
        yield settings, lambda name, value: bao.put(f"blogdata/{name}", value)


def on_a_real_server(home: Path) -> Iterator[tuple[Settings, Store]]:
    """A deployment with the server of a program, if there is one."""
    program = shutil.which("bao") or shutil.which("vault")
    if program is None:
        pytest.skip("neither bao nor vault is installed")
    address = f"http://127.0.0.1:{processes.free_port()}"
    options = ["-dev", f"-dev-root-token-id={CANARY}", f"-dev-listen-address={address.removeprefix('http://')}"]
    with subprocess.Popen([program, "server", *options], cwd=home, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(f"{address}/v1/sys/health")
            settings = deployment(home, f'provider = "openbao"\naddress = "{address}"', BAO_TOKEN=CANARY)
            yield settings, lambda name, value: _put(f"{address}/v1/secret/data/blogdata/{name}", value)
        finally:
            server.terminate()


def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"nothing answers at {url}")


def _put(url: str, value: str) -> None:
    body, headers = json.dumps({"data": {"value": value}}).encode(), {"X-Vault-Token": CANARY}
    urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=5).close()


@pytest.fixture(params=[in_files, on_a_server, on_a_real_server])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Settings, Store]]:
    """A deployment whose provider can store secrets, and what stores one there."""
    yield from request.param(tmp_path)


def test_a_secret_is_found_by_its_name_in_all_its_versions(stored: tuple[Settings, Store]) -> None:
    settings, store = stored
    with pytest.raises(ConfigurationError, match="the secret partner does not exist"):
        secrets.given(settings, "partner")
    store("partner", f"{CANARY}\n")
    store("partner", "another")
    assert secrets.given(settings, "partner").reveal() == "another"
    pointer = secrets.pointer(settings, "partner")
    assert pointer.provider.versions("partner") == (1, 2)
    assert [fetch(pointer, version).reveal() for version in (1, 2)] == [CANARY, "another"]
    with pytest.raises(ConfigurationError, match="version 3 of the secret partner") as missing:
        fetch(pointer, 3)
    assert "partner" in missing.value.where
    assert CANARY not in str(missing.value)


def test_secrets_of_the_environment(tmp_path: Path) -> None:
    variables = {"BLOGDATA_SECRET_POSTGRES_ANALYST": "first", "BLOGDATA_SECRET_POSTGRES_ANALYST__2": CANARY}
    settings = deployment(tmp_path, BLOGDATA_SECRETS="environment", **variables)
    assert secrets.given(settings, "postgres-analyst").reveal() == CANARY
    assert fetch(secrets.pointer(settings, "postgres-analyst"), 1).reveal() == "first"
    assert CANARY not in repr(settings)
    with pytest.raises(ConfigurationError) as missing:
        secrets.given(settings, "shop")
    assert "BLOGDATA_SECRET_SHOP" in str(missing.value)
    with pytest.raises(ConfigurationError, match=r"the secret visitor\.key does not exist") as unmade:
        secrets.read(settings, "visitor.key")
    assert "openssl rand -hex 32 (BLOGDATA_SECRET_VISITOR_KEY)" in unmade.value.next_step
    assert not (tmp_path / "secrets").exists()


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


def test_a_secret_for_another_program_is_in_a_file(stored: tuple[Settings, Store]) -> None:
    settings, _ = stored
    kept = settings.secrets.provider == "files"
    found = secrets.in_files(settings, "masks")
    assert fetch(found) == secrets.read(settings, "masks")
    file = Path(found.place)
    assert (file.stat().st_mode & 0o077, kept or file.parent.stat().st_mode & 0o077 == 0) == (0, True)
    assert file.is_relative_to(settings.home) == kept
    # What a plan has of it.
    assert fetch(found).reveal().encode() not in pickle.dumps(found)


SHOWS = """
import os, signal, sys
from blogdata.services import config, secrets

print(os.path.dirname(secrets.in_files(config.load(), "masks").place), flush=True)
if sys.argv[1] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""
"""A process that shows a secret in memory."""


def test_a_secret_that_a_killed_process_has_shown_goes_with_the_next_one(tmp_path: Path) -> None:
    variables = {"BLOGDATA_HOME": str(tmp_path), "BLOGDATA_SECRET_MASKS": CANARY * 2}
    settings = deployment(tmp_path, 'provider = "environment"', **variables)

    def shown_by(what: str) -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", SHOWS, what],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    (running, in_use), (killed, left) = shown_by("waits"), shown_by("dies")
    with running, killed:
        assert killed.wait() == -signal.SIGKILL
        assert (left / "masks").read_text() == CANARY * 2
        file = Path(secrets.in_files(settings, "masks").place)
        assert (left.exists(), in_use.exists(), file.exists()) == (False, True, True)
    assert not in_use.exists(), "it goes with its process"


REPLACED = [("old", "new", 2), ("old", "old", 1)]


@pytest.mark.parametrize(("first", "later", "asked"), REPLACED)
def test_a_replaced_key_is_read_again_while_a_job_runs(tmp_path: Path, first: str, later: str, asked: int) -> None:
    settings = deployment(tmp_path)
    secrets.files(settings).add("partner", Secret(first), after=0)
    record = Delivery(id="d", key="k", sequence=1, payload="{}")
    with web_server() as partner:
        key = SecretInUse(secrets.pointer(settings, "partner"))
        (tmp_path / "secrets" / "partner").write_text(later)
        partner.answers = [(401, {}), (422, {})]
        with HttpTarget(partner.address, key=key, timeout=5, record=asdict) as target:
            if first == later:
                with pytest.raises(KeyRefused, match="refused the key: status 401") as refused:
                    target.send([record])
                assert str(tmp_path / "secrets" / "partner") in refused.value.next_step
            else:
                with pytest.raises(Refused, match="of 1 records: status 422"):
                    target.send([record])
        assert [sent["Authorization"] for sent in partner.headers] == [f"Bearer {first}", f"Bearer {later}"][:asked]


@pytest.fixture
def bao(tmp_path: Path) -> Iterator[tuple[Bao, Settings]]:
    """A server with one secret, and a deployment whose token is in a file."""
    (tmp_path / "token").write_text("good\n")
    (tmp_path / "token").chmod(0o600)
    with openbao(tokens={"good"}) as server:
        server.put("blogdata/shop", CANARY)
        section = f'provider = "openbao"\naddress = "{server.address}/"\ntoken_file = "token"'
        yield server, deployment(tmp_path, section)


def test_a_replaced_token_of_the_server_is_read_again(bao: tuple[Bao, Settings]) -> None:
    server, settings = bao
    assert secrets.given(settings, "shop").reveal() == CANARY
    server.tokens = {"newer"}
    with pytest.raises(ConfigurationError, match="refuses the token") as refused:
        secrets.given(settings, "shop")
    assert "good" not in str(refused.value)
    (settings.home / "token").write_text("newer")
    assert secrets.given(settings, "shop").reveal() == CANARY


@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, TransientError), (429, TransientError), (302, ConfigurationError), (400, ConfigurationError)],
)
def test_what_a_server_answers_is_an_error_without_what_it_sent(
    bao: tuple[Bao, Settings], status: int, kind: type[Exception]
) -> None:
    server, settings = bao
    server.answers = [status]
    with pytest.raises(kind) as refused:
        secrets.provider(settings).add("shop", Secret(CANARY), after=1)
    assert CANARY not in f"{refused.value} {refused.value.__cause__!r} {refused.value.__context__!r}"
    assert server.address in str(refused.value)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('provider = "vault"', "'vault' cannot be used"),
        ('provider = "openbao"', "needs an address with TLS"),
        ('provider = "openbao"\naddress = "http://bao.example.org"\ntoken_file = "t"', "needs an address with TLS"),
        ('provider = "openbao"\naddress = "https://bao.example.org"', "asks for a token"),
        ('path = "a/../b c"', "is not names between slashes"),
        ('token = "t"', "no setting is called token"),
        ('[postgres]\nurl = "postgresql://a@h/d"\nsecret = "../blog"', "is not a name of letters, digits, dots"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, section: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        deployment(tmp_path, section)


def test_other_programs_do_not_inherit_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BLOGDATA_SECRET_SHOP", "BAO_TOKEN"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("KEPT", "yes")
    own_java = Java(home=tmp_path, version=17, source="system")
    parts = SparkParts(java=own_java, java_home=tmp_path, class_path=())
    found = spark_launch.environment(deployment(tmp_path), parts)
    assert found["KEPT"] == "yes"
    assert CANARY not in str(found)
