"""`blogdata maintain` tells what is due and does it; a table that cannot be read is named, and the others go on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from blogdata.orchestration.lake_resource import LakeResource
from lineage.command_line import Said
from published import bronze, deployment, silver

HOURS = ("2026-01-05T00", "2026-01-05T01", "2026-01-05T02")
DAMAGED, WHOLE = "bronze.visits", "silver.visits"
LONG_AGO = 60 * 24 * 3600


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    """Publications of long ago, and in each table a file that a write has left that was cut off."""
    made = deployment(tmp_path / "blog")
    for hour in HOURS:
        read = bronze(made.lake, {hour: {hour: 3}})
        silver(made.lake, {hour: 3}, read=read)
    for dataset in (DAMAGED, WHOLE):
        left_by(made, dataset).write_bytes(b"half a file")
    then = time.time() - LONG_AGO
    for file in Path(made.root).rglob("*"):
        os.utime(file, (then, then))
    return made


@pytest.fixture
def said(home: LakeResource, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.setenv("BLOGDATA_HOME", str(home.landing_path.parent))
    return Said(monkeypatch, capsys)


def left_by(home: LakeResource, dataset: str) -> Path:
    return Path(home.lake.path(dataset)) / "part-left.parquet"


def test_it_shows_what_is_due_and_does_it(home: LakeResource, said: Said) -> None:
    code, out, err = said("maintain", WHOLE, "--dry-run")
    assert (code, " ".join(out.split()), err) == (0, f"{WHOLE} vacuum 1 files, 11 bytes", "")
    assert left_by(home, WHOLE).exists()
    code, out, _ = said("maintain", "--json")
    done = {(one["dataset"], one["action"]): (one["files"], one["bytes"], one["left"]) for one in json.loads(out)}
    assert (code, done) == (0, {(name, "vacuum"): (1, 11, None) for name in (DAMAGED, WHOLE)})
    assert not left_by(home, WHOLE).exists()
    assert said("maintain")[1] == "nothing is due\n"


def cut_off(commit: Path) -> None:
    commit.write_bytes(commit.read_bytes()[:-20])


def garble(commit: Path) -> None:
    commit.write_bytes(b"\x00" * commit.stat().st_size)


def garble_a_checkpoint(commit: Path) -> None:
    DeltaTable(commit.parent.parent).create_checkpoint()
    (checkpoint,) = commit.parent.glob("*.checkpoint.parquet")
    garble(checkpoint)


@pytest.mark.parametrize("damage", [cut_off, garble, Path.unlink, garble_a_checkpoint], ids=lambda one: one.__name__)
def test_a_damaged_log_is_named_and_the_other_tables_go_on(
    home: LakeResource, said: Said, damage: Callable[[Path], None]
) -> None:
    damage(Path(home.lake.path(DAMAGED)) / "_delta_log" / f"{1:020}.json")
    code, out, err = said("maintain", "--dry-run")
    assert (code, DAMAGED in out, "vacuum" in out) == (1, True, True)
    assert "blogdata repair" in err
    code, out, _ = said("maintain", "--json")
    vacuumed, fault = json.loads(out)
    assert (code, vacuumed["dataset"], fault["dataset"]) == (1, WHOLE, DAMAGED)
    assert fault["error"]["where"].startswith(DAMAGED)
    assert "log" in fault["error"]["what"]
    assert (left_by(home, DAMAGED).exists(), left_by(home, WHOLE).exists()) == (True, False)
