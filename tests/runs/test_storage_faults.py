"""A full disk ends a command with one message, whichever component noticed it first."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from blogdata.cli import main
from blogdata.errors import PlatformError
from blogdata.operate.config import Settings
from blogdata.runs import storage_faults


def test_storage_faults_name_their_place_and_next_step(settings: Settings) -> None:
    fault = OperationalError("INSERT", None, sqlite3.OperationalError("database or disk is full"))
    with (
        pytest.raises(PlatformError, match=r"(?s)database or disk is full.*/home/x/dagster.*free space"),
        storage_faults.translated(replace(settings, home=Path("/home/x"))),
    ):
        raise fault


def test_a_full_disk_is_one_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(main, "app", lambda: Path("/dev/full").write_text("x", encoding="utf-8"))
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("error: the disk is full")
    assert "Traceback" not in said
