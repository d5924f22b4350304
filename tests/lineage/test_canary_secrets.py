"""No secret is in a file, a log, Dagster's storage, a process or an error of a deployment (Secrets Pointer)."""

from __future__ import annotations

import base64
import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from alert_servers import Posted, web_server
from blogdata.operate import dagster_home
from blogdata.operate.postgres import LOGINS, secret_of
from blogdata.privacy.file_search import search
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import COMMON_KEY
from lineage.origins import three_hours
from patterns.partner_feed import partner

OWN = ("partner-tokens", "masks", dagster_home.UI_TOKEN, "events", *map(secret_of, LOGINS))
"""Secrets that a deployment makes for itself, beside the key of its visitors."""
GIVEN = ("partner", "hook", "blog-db")
SETTINGS = """
[partner]
url = "{partner}"
secret = "partner"
[postgres]
url = "{postgres}"
secret = "blog-db"
[[alerts]]
name = "path"
address = "json://{hook}/{{secret}}"
secret = "hook"
[[alerts]]
name = "login"
address = "json://robot:{{secret}}@{hook}"
secret = "hook"
"""
COMMANDS = (
    ("run", "--select", "serving.partner_feed,serving.daily_stats", "--json"),
    ("doctor",),
    ("status",),
    ("forget", "nobody"),
    ("rights", "gold.page_stats", "--roles"),
    ("sql", "SELECT user_id FROM silver.visits LIMIT 1", "--as", "engineer"),
)
"""What asks for secrets, or tells of what did."""


def canary(name: str) -> str:
    """Return the value of a secret; its name is not in it."""
    return f"c4nary{name.encode().hex():0<58}"


REFUSED = (
    "the partner refused the key",
    "PostgreSQL refuses the login",
    "channel login: Failed to send JSON POST notification: error=403",
)


@pytest.fixture
def refusing(postgres_server: str, tmp_path: Path) -> Iterator[tuple[str, Posted]]:
    """The settings of servers that want other secrets, and one of these."""
    parts = urlsplit(postgres_server)
    with partner(tmp_path / "received", key="another") as api, web_server() as hook:
        hook.answers = [(403, {})] * 2
        addresses = {
            "partner": api.url,
            "hook": hook.channel.removeprefix("json://"),
            "postgres": f"postgresql://blogdata@{parts.hostname}:{parts.port}/blogdata",
        }
        yield SETTINGS.format(**addresses), hook


def stored(folder: Path) -> dict[str, str]:
    """Store canaries as secrets, unless a deployment has made its own; return all secrets by their names."""
    for name in (*OWN, *GIVEN):
        file = folder / name
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(canary(name), encoding="utf-8")
    found = {file.name: file.read_text(encoding="utf-8").strip() for file in folder.iterdir() if file.name[0] != "."}
    assert found["visitor.key"] == COMMON_KEY
    assert {*OWN, *GIVEN} <= found.keys()
    return found


def processes() -> str:
    lines = []
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            lines.append(f"{process.cmdline()} {process.environ() if process.pid in children else ''}")
    return "\n".join(lines)


def test_the_values_of_secrets_are_nowhere_but_in_their_store(
    deploy: Deploy,
    refusing: tuple[str, Posted],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = deploy.published("secretive", three_hours)
    home = made.settings.home
    values, (settings, hook) = stored(home / "secrets"), refusing
    with (home / "blogdata.toml").open("a", encoding="utf-8") as toml:
        toml.write(settings)
    monkeypatch.setenv("BLOGDATA_HOME", str(home))
    said, seen, outputs = Said(monkeypatch, capsys), "", dict[str, str]()
    for command in COMMANDS:
        outputs[" ".join(command)] = str(said(*command))
        seen += processes()
    assert all(refused in str(outputs) for refused in REFUSED), outputs
    # The servers were shown what they were to be shown.
    assert values["hook"] in str(hook.paths)
    assert not (home / "secrets").rename(tmp_path / "secrets").is_relative_to(home)

    for name, value in values.items():
        assert value not in seen, f"{name} is in a process"
        assert [command for command, output in outputs.items() if value in output] == [], name
    forms = [form for value in values.values() for form in (value, base64.b64encode(value.encode()).decode())]
    found = search(home, forms)
    assert (found.traces, found.unsearched) == ({}, {})
    assert found.files > 100
    # The opposite: a value that is written down is found.
    packed = home / "dagster" / "packed.gz"
    packed.write_bytes(gzip.compress(base64.b64encode(values["hook"].encode())))
    assert {*search(home / "dagster", forms).traces} == {"packed.gz"}
