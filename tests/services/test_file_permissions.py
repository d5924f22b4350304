from __future__ import annotations

import os
from pathlib import Path

import pytest

from blogdata.services import config, doctor, files
from blogdata.services.config import Settings
from blogdata.services.doctor import Diagnosis

NOBODY = 65534


def loaded(home: Path, **more: str) -> Settings:
    return config.load({"BLOGDATA_HOME": str(home), **more})


def finding(settings: Settings) -> Diagnosis:
    return next(found for found in doctor.examine(settings) if found.name == "privacy")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_home_and_one_of_an_earlier_version_are_closed(tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "landing" / "visits").mkdir(parents=True)
    old.chmod(0o755)
    for home in (old, tmp_path / "new"):
        assert mode(loaded(home).home) == 0o700
    assert finding(loaded(old)).detail == "only their owner may read files with secrets"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("place", ["landing/visits/hour=2026-01-05T00/part.json", "landing", "theirs"])
def test_a_home_that_another_user_shares_stays_open_and_is_reported(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    (home / place).mkdir(parents=True)
    os.chown(home / place, NOBODY, NOBODY)
    home.chmod(0o755)
    settings = loaded(home)
    assert mode(home) == 0o755
    assert finding(settings).ok


@pytest.mark.parametrize("name", ["secrets/shop", "blogdata.toml", "services/spark/server.conf"])
def test_an_open_secret_is_a_problem(tmp_path: Path, name: str) -> None:
    settings = loaded(tmp_path / "home")
    file = settings.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    file.chmod(0o644)
    # In a closed home only the folder of secrets is checked: secrets may be copied elsewhere.
    assert finding(settings).ok == (not name.startswith("secrets/"))
    settings.home.chmod(0o750)
    found = finding(settings)
    assert not found.ok
    assert str(file) in found.detail
    assert found.next_step.startswith(f"Run chmod 600 {file}")
    file.chmod(0o600)
    assert files.exposed_secrets(settings.home) == []
