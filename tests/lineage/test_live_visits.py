"""Checkpointer, Dead-Letter, Windowed Deduplicator and Late Data Detector in a stream: every visit once, in seconds.

The tables after a batch, a restart or a kill are compared with an undisturbed run, with the batch tables, and with a
model in plain Python.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from assets.streams.live_visits import STREAM
from blogdata.errors import PlatformError
from blogdata.ledger.events import appended
from blogdata.patterns.error_management.checkpointer import checkpoints, stream_offset_rows
from blogdata.stream import stream as streams
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import BRONZE, HOURS, STREAMED, VISITS, contents, in_order, model, problems, published, tick
from quality.contracts import CONTRACTS


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    return live.simulate(deploy("live-world"))


@pytest.fixture(scope="module")
def straight(world: Deployment, deploy: Deploy) -> Deployment:
    """Three hours, processed undisturbed, one batch for each."""
    made = live.land(deploy("live-straight"), world)
    tick(made)
    return made


@pytest.mark.campaign
def test_streamed_events_are_those_of_plain_python_and_of_the_batch(straight: Deployment) -> None:
    first, left_out, marks = model(straight.landing, in_order(straight))
    assert published(straight) == (first, left_out)
    assert {verdict for _, verdict in left_out} == {"late", "duplicate", "conflict"}
    notes = [commit.info["appended"]["notes"] for commit in appended(straight.lake, VISITS)][::-1]
    assert [datetime.fromisoformat(note["progress"]["watermark"]) for note in notes] == marks
    assert problems(straight) == []
    assert straight.run(select=("bronze.visits", "silver.visits")).problems == []
    columns = [column.name for column in CONTRACTS["bronze.visits"].columns if column.name != "crawler"]
    lines = sorted(straight.rows("bronze.visits", *columns), key=repr)
    assert lines == sorted(straight.rows(BRONZE, *columns), key=repr)
    columns = [column.name for column in STREAMED[VISITS].columns if column.name not in ("batch", "raw")]
    # Late events are in the batch tables, too.
    streamed, batch = (Counter(straight.rows(name, *columns)) for name in (VISITS, "silver.visits"))
    assert streamed - batch == Counter()
    assert 0 < (batch - streamed).total() <= sum(rows for (_, verdict), rows in left_out.items() if verdict == "late")


CUTS = ((BRONZE, 0, "committed"), (VISITS, 1, "written"), (VISITS, 1, "committed"), (BRONZE, 2, "committed"))


@pytest.mark.campaign
def test_an_interrupted_stream_ends_in_the_same_tables(
    world: Deployment, deploy: Deploy, straight: Deployment, tmp_path: Path
) -> None:
    begun, expected = live.land(deploy("live-begun"), world), contents(straight)
    for dataset, number, phase in CUTS:
        live.interrupted(begun, tmp_path / phase / dataset, dataset, number, phase)
        if (dataset, phase) == (BRONZE, "committed"):
            # It starts again after a long time: the files that the batch has added are replaced.
            begun.rest(BRONZE)
    # The last batch leaves lines whose events are not published; its checkpoint is not resumed.
    tick(begun, renew=True)
    assert contents(begun) == expected
    assert problems(begun) == []
    assert [checkpoint.number for checkpoint in checkpoints(begun.settings.home / "checkpoints")] == [1, 2]
    # Nothing is doubled or lost either if all checkpoints are.
    shutil.rmtree(begun.settings.home / "checkpoints")
    begun.land(HOURS[-1], [event("11:59", "/new")], name="zzz.json")
    tick(begun)
    assert {name: len(rows) for name, rows in contents(begun).items()} == {
        name: len(rows) + 1 for name, rows in expected.items()
    }
    assert problems(begun) == []


@pytest.mark.campaign
def test_a_missing_file_stops_the_stream_until_restored(deploy: Deploy, tmp_path: Path) -> None:
    made = deploy("live-gone")
    lines = [event("10:05", "/a"), event("10:06", "/b")]
    file = made.land(HOURS[1], lines)
    live.interrupted(made, tmp_path, BRONZE, 0, "opened")
    file.unlink()
    with pytest.raises(PlatformError, match="is gone"):
        tick(made)
    made.land(HOURS[1], lines)
    made.folder("2026-13-45T99").mkdir(parents=True)
    (made.folder("2026-13-45T99") / "x.json").write_bytes(lines[0])
    packed = made.folder(HOURS[2]) / "more.json.gz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(gzip.compress(event("11:07", "/c") + b"\n"))
    tick(made)
    assert sorted(made.rows(VISITS, "page")) == ["/a", "/b", "/c"]
    assert problems(made) == []


@pytest.mark.campaign
def test_stream_command_publishes_landed_files_until_terminated(deploy: Deploy) -> None:
    made = deploy("live-command")
    environment = {**os.environ, "BLOGDATA_HOME": str(made.settings.home)}
    command = [sys.executable, "-c", "from blogdata.cli.main import main; main()"]
    command += ["stream", "silver.visits_live", "--every", "1", "--json"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        # It may start before anything has landed.
        _until(lambda: bool(checkpoints(made.settings.home / "checkpoints")), process)
        made.land(HOURS[1], [event("10:05", "/a")])
        _until(lambda: _pages(made) == ["/a"], process)
        with pytest.raises(streams.StreamBusy):
            tick(made, STREAM)
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert json.loads(said) == {BRONZE: 1, VISITS: 1}
    assert all(row[6] for row in stream_offset_rows(made.settings.home / "checkpoints"))
    assert problems(made) == []


def _pages(deployment: Deployment) -> list[str]:
    return sorted(deployment.rows(VISITS, "page")) if deployment.lake.caught_up(VISITS) is not None else []


def _until(condition: Any, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 900
    while not condition():
        assert process.poll() is None, "the command ended"
        assert time.monotonic() < deadline
        time.sleep(0.2)
