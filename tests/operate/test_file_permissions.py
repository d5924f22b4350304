from __future__ import annotations

from pathlib import Path

import pytest

from blogdata import files
from blogdata.operate import config
from blogdata.operate.config import Settings
from blogdata.watch import doctor
from blogdata.watch.doctor import Diagnosis


def loaded(home: Path) -> Settings:
    return config.load({"BLOGDATA_HOME": str(home)})


def finding(settings: Settings) -> Diagnosis:
    return next(found for found in doctor.examine(settings) if found.name == "privacy")


def test_a_home_is_closed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o755)
    for home in (tmp_path / "old", tmp_path / "new"):
        assert loaded(home).home.stat().st_mode & 0o777 == 0o700
    assert finding(loaded(tmp_path / "old")).ok


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
