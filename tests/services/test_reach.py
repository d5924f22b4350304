"""`blogdata doctor` says who reaches what, as processes listen and as folders are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.services import dagster_home, doctor, postgres
from blogdata.services.config import Settings


@pytest.fixture
def mine(settings: Settings, tmp_path: Path) -> Settings:
    """A deployment of one test, of which nothing runs."""
    own = replace(settings, home=tmp_path, landing=tmp_path / "landing", lake=tmp_path / "lake")
    for folder in (own.home, own.landing, own.lake):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o700)
    return own


def told(settings: Settings) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in doctor.lines(settings))


def test_folders_are_told_as_they_are(mine: Settings) -> None:
    assert {name: said.partition(" may ")[2] for name, said in told(mine).items()} == dict.fromkeys(
        ("home", "lake", "landing zone"), "read and write, nobody else may enter"
    )
    mine.landing.chmod(0o770)
    mine.lake.chmod(0o755)
    assert told(mine)["landing zone"].endswith("may enter and write")
    assert "the group" in told(mine)["landing zone"]
    assert told(mine)["lake"].endswith("everybody may enter")


def test_a_running_server_is_told_by_the_addresses_it_listens_on(settings: Settings, postgres_server: str) -> None:
    assert "127.0.0.1" in postgres_server
    assert told(settings)["PostgreSQL"] == (
        "from this machine only; a login with its password may do what it is granted"
    )
    assert postgres.status(settings).pid


def test_a_server_for_others_is_told_to_be_one(mine: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mine.home / "dagster"
    folder.mkdir()
    for host, address in (("192.0.2.7", "192.0.2.7"), ("0.0.0.0", "0.0.0.0"), ("[::]", "::")):
        dagster_home.note_ui_address(folder, f"{host}:3000")
        assert told(mine)["Dagster's UI"].startswith(f"from beyond this machine, at {address}, without TLS; ")
    dagster_home.note_ui_address(folder, "127.0.0.1:3000")
    assert told(mine)["Dagster's UI"].startswith("from this machine only; whoever has the token")
