"""The job `maintain` does what is due; a table that cannot be read is named, and the others go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import table_files
from blogdata.runs.lake_resource import LakeResource
from lineage.command_line import Said
from published import bronze, deployment, silver

HOURS = ("2026-01-05T00", "2026-01-05T01", "2026-01-05T02")
DAMAGED, WHOLE = "bronze.visits", "silver.visits"


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    """Publications of long ago, and in each table a file that a write has left that was cut off."""
    made = deployment(tmp_path / "blog")
    for hour in HOURS:
        read = bronze(made.lake, {hour: {hour: 3}})
        silver(made.lake, {hour: 3}, read=read)
    for dataset in (DAMAGED, WHOLE):
        left_by(made, dataset).write_bytes(b"half a file")
    table_files.age(Path(made.root), datetime.now(timezone.utc) - timedelta(days=60))
    return made


@pytest.fixture
def said(home: LakeResource, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.setenv("BLOGDATA_HOME", str(home.landing_path.parent))
    return Said(monkeypatch, capsys)


def left_by(home: LakeResource, dataset: str) -> Path:
    return Path(home.lake.path(dataset)) / "part-left.parquet"


def test_it_does_what_is_due(home: LakeResource, said: Said) -> None:
    ok, done, _ = started(said)
    assert (ok, done["done"], done["left"]) == (True, 2, 0)
    assert [(one["dataset"], one["action"], one["files"], one["bytes"]) for one in done["tables"]] == [
        (name, "vacuum", 1, 11) for name in (DAMAGED, WHOLE)
    ]
    assert not left_by(home, WHOLE).exists()
    assert started(said)[1]["done"] == 0


def started(said: Said, *config: str) -> tuple[bool, dict[str, Any], str]:
    answer = json.loads(said("job", "maintain", *config, "--json")[1])
    return answer["ok"], answer["result"], "\n".join(answer["problems"])


def cut_off(commit: Path) -> None:
    commit.write_bytes(commit.read_bytes()[:-20])


def garble(commit: Path) -> None:
    commit.write_bytes(b"\x00" * commit.stat().st_size)


def garble_a_checkpoint(commit: Path) -> None:
    DeltaTable(commit.parent.parent).create_checkpoint()
    (checkpoint,) = commit.parent.glob("*.checkpoint.parquet")
    garble(checkpoint)


@pytest.mark.parametrize("damage", [cut_off, garble, Path.unlink, garble_a_checkpoint], ids=lambda one: one.__name__)
def test_the_job_fails_for_a_damaged_log_when_the_other_tables_are_done(
    home: LakeResource, said: Said, damage: Callable[[Path], None]
) -> None:
    damage(Path(home.lake.path(DAMAGED)) / "_delta_log" / f"{1:020}.json")
    ok, _, why = started(said)
    assert (ok, DAMAGED in why, "folder of the table away" in why) == (False, True, True)
    assert (left_by(home, DAMAGED).exists(), left_by(home, WHOLE).exists()) == (True, False)
