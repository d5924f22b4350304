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
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from assets.transforms.live_batches import DEAD_LETTERS
from assets.transforms.live_visits import STREAM
from blogdata.evidence.appended import appended
from blogdata.orchestration import stream as streams
from blogdata.orchestration.stream_faults import StreamFailed
from blogdata.patterns.error_management.checkpointer import checkpoints, stream_offset_rows
from blogdata.patterns.error_management.dead_letter import TooManyDeadLetters
from blogdata.patterns.error_management.streamed_files import LandedFileGone
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import (
    BRONZE,
    HOURS,
    SET_ASIDE,
    STREAMED,
    VISITS,
    contents,
    in_order,
    model,
    problems,
    tick,
    verdicts_of,
)
from quality.contracts import CONTRACTS


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    """A simulated day, not landed yet."""
    return live.simulate(deploy("live-world"))


@pytest.fixture(scope="module")
def straight(world: Deployment, deploy: Deploy) -> Deployment:
    """Three hours, processed undisturbed, one batch for each."""
    made = live.land(deploy("live-straight"), world)
    tick(made)
    return made


@pytest.fixture(scope="module")
def expected(straight: Deployment) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of its tables."""
    return contents(straight)


@pytest.mark.campaign
def test_watermark_never_falls_and_bounds_the_stream_state(straight: Deployment) -> None:
    _, marks, remembered = model(straight.landing, in_order(straight))
    notes = [commit.info["appended"]["notes"] for commit in appended(straight.lake, VISITS)][::-1]
    assert [note["state_rows"] for note in notes] == remembered
    assert max(remembered) < len(straight.rows(VISITS, "raw")) / 2
    after = [datetime.fromisoformat(note["progress"]["watermark"]) for note in notes]
    assert after[:-1] == marks[1:]
    assert after == sorted(after)


@pytest.mark.campaign
def test_streamed_and_batch_tables_hold_the_same_rows(straight: Deployment) -> None:
    assert straight.run(select=("bronze.visits", "silver.visits")).problems == []
    columns = [column.name for column in CONTRACTS["bronze.visits"].columns]
    assert sorted(straight.rows("bronze.visits", *columns), key=repr) == sorted(
        straight.rows(BRONZE, *columns), key=repr
    )
    place = ("source_file", "source_offset")
    lines = {(file, offset): raw for file, offset, raw in straight.rows("bronze.visits", *place, "raw")}
    assert {(file, offset): raw for file, offset, raw in straight.rows(VISITS, *place, "raw")}.items() <= lines.items()
    columns = [column.name for column in STREAMED[VISITS].columns if column.name not in ("batch", "raw")]
    place_at = [columns.index(name) for name in place]
    late = {position for position, reason in verdicts_of(straight).items() if reason == "late"}
    # Events in order are equal; late events are in the batch tables, and set aside by the stream.
    batch = [row for row in straight.rows("silver.visits", *columns) if tuple(row[at] for at in place_at) not in late]
    assert sorted(batch, key=repr) == sorted(straight.rows(VISITS, *columns), key=repr)


CUTS = ((BRONZE, 0, "committed"), (SET_ASIDE, 1, "committed"), (VISITS, 1, "written"), (BRONZE, 2, "committed"))


@pytest.fixture
def begun(world: Deployment, deploy: Deploy, request: pytest.FixtureRequest) -> Deployment:
    """The three hours, none of them processed."""
    return live.land(deploy(f"live-{request.node.name}"[:60]), world)


@pytest.mark.campaign
def test_an_interrupted_stream_ends_in_the_same_tables(
    begun: Deployment, expected: dict[str, Any], tmp_path: Path
) -> None:
    for dataset, number, phase in CUTS:
        probe = tmp_path / f"{dataset}-{number}-{phase}"
        (probe / dataset / str(number)).mkdir(parents=True)
        (probe / dataset / str(number) / f"{phase}.fail").touch()
        with pytest.raises(StreamFailed, match=rf"WRITE_ENDED.{phase.upper()}"):
            tick(begun, probe=str(probe))
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
    assert len(begun.rows(BRONZE, "raw")) == len(expected[BRONZE]) + 1
    assert sorted(set(verdicts_of(begun).values())) == ["conflict", "duplicate", "first", "late"]
    assert len(verdicts_of(begun)) == len(expected[VISITS]) + len(expected[SET_ASIDE]) + 1
    assert problems(begun) == []


@pytest.mark.campaign
def test_excess_dead_letters_stop_the_stream_until_accepted(deploy: Deploy) -> None:
    made = deploy("live-broken")
    good = [event("10:05", f"/{at}") for at in range(40)]
    made.land(HOURS[1], [*good, *[b"{"] * 1000])
    for _ in range(2):
        with pytest.raises(TooManyDeadLetters, match="1000 of 1040 rows") as stopped:
            tick(made)
        assert made.pasted(str(stopped.value)) == [(["not_json"], 1000)]
        assert len(made.rows(BRONZE, "raw")) == 1040
        assert len(made.rows(VISITS, "raw")) == 40
    assert {reason for reasons in made.rows(BRONZE, "reasons") for reason in reasons} == {"not_json"}
    tick(made, accepted=frozenset({DEAD_LETTERS}))
    assert problems(made) == []
    assert [row[6] for row in stream_offset_rows(made.settings.home / "checkpoints")] == [True]


@pytest.mark.campaign
def test_a_missing_file_stops_the_stream_until_restored(deploy: Deploy, tmp_path: Path) -> None:
    made = deploy("live-gone")
    lines = [event("10:05", "/a"), event("10:06", "/b")]
    file = made.land(HOURS[1], lines)
    probe = tmp_path / "probe" / BRONZE / "0"
    probe.mkdir(parents=True)
    (probe / "opened.fail").touch()
    with pytest.raises(StreamFailed):
        tick(made, probe=str(tmp_path / "probe"))
    file.unlink()
    with pytest.raises(LandedFileGone, match="is gone"):
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


def test_stream_command_publishes_landed_files_until_terminated(deploy: Deploy) -> None:
    made = deploy("live-command")
    environment = {**os.environ, "BLOGDATA_HOME": str(made.settings.home)}
    command = [
        sys.executable,
        "-c",
        "from blogdata.cli.main import main; main()",
        "stream",
        "silver.visits_live",
        "--every",
        "1",
        "--json",
    ]
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
    assert json.loads(said) == {BRONZE: 1, VISITS: 1, SET_ASIDE: 0}
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
