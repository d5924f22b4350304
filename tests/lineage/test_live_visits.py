"""Checkpointer, Dead-Letter, Windowed Deduplicator and Late Data Detector in a stream: every visit once, in seconds.

What a batch, a restart or a kill leaves is held against an undisturbed run, against the batch tables, and against a
model in plain Python.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import oracle
from assets.live import visits_live
from assets.transforms.live_visits import DEAD_LETTERS, STREAM
from kills import kill
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from orchestration import stream as streams
from orchestration.dataset import key_of
from orchestration.stream import Place, StreamFailed
from patterns.core import ledger
from patterns.core.run import RunContext
from patterns.error_management.checkpointer import IncompatibleCheckpoint, appended, checkpoints, kept_rows
from patterns.error_management.dead_letter import TooManyDeadLetters
from patterns.ingestion.streamed_files import LandedFileGone
from quality.contracts import CONTRACTS, STREAMED
from resources import connections
from resources.spark import SparkResource
from services import spark_connect
from services.config import Settings
from simulator.faults import FaultRates
from simulator.spec import SimulationSpec

BRONZE, ASIDE, VISITS = STREAM.datasets
HOURS = tuple(f"2026-01-05T{hour:02d}" for hour in (9, 10, 11))
SPEC = SimulationSpec(
    days=1, visits_per_day=1500, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)
ONE_BY_ONE = replace(STREAM, source=replace(STREAM.source, files_per_batch=1))
"""A batch for each landed file."""
ALLOWED = timedelta(minutes=15)
SEED = int(os.environ.get("KILL_SEED", "1"))
PHASES = ("opened", "written", "audited", "committed")


def place(deployment: Deployment, **more: Any) -> Place:
    """Where a test's stream publishes."""
    run = RunContext(run_id="run", job="tests", code_version="v1")
    return Place(lake=deployment.lake, landing=deployment.landing, run=run, **more)


def tick(deployment: Deployment, stream: streams.Stream = ONE_BY_ONE, *, renew: bool = False, **more: Any) -> None:
    """Take in what has landed."""
    with SparkResource(home=str(deployment.settings.home)).guard() as spark:
        folder = deployment.settings.home / "checkpoints"
        streams.run(spark, stream, place(deployment, **more), checkpoints=folder, new_checkpoint=renew)


def contents(deployment: Deployment) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the streamed tables, save the name of the batch it came with."""
    held = {}
    for name, contract in STREAMED.items():
        columns = [column.name for column in contract.columns if column.name != "batch"]
        held[name] = sorted(deployment.rows(name, *columns), key=repr)
    return held


def problems(deployment: Deployment) -> list[str | None]:
    """What does not add up in the accounts of the streamed tables."""
    lines = [
        line for contract in STREAMED.values() for line in ledger.audit(deployment.lake, deployment.events, contract)
    ]
    assert lines
    return [line.problem for line in lines if line.problem]


def in_order(deployment: Deployment) -> list[Path]:
    """Have the files of a landing zone come in the order of their hours."""
    files = sorted((deployment.landing / "visits").glob("*/*/*.json"))
    for at, file in enumerate(files):
        os.utime(file, (1_767_600_000 + at, 1_767_600_000 + at))
    return files


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    """A day that lies ready."""
    made = deploy("live-world")
    made.simulate(SPEC)
    return made


@pytest.fixture(scope="module")
def straight(world: Deployment, deploy: Deploy) -> Deployment:
    """Three hours, taken in without a disturbance, a batch for each."""
    made = deploy("live-straight")
    made.copy_hours(world, HOURS)
    assert len(in_order(made)) == len(HOURS)
    tick(made)
    return made


@pytest.fixture(scope="module")
def expected(straight: Deployment) -> dict[str, list[tuple[Any, ...]]]:
    """What is in the tables after it."""
    return contents(straight)


Position = tuple[str, int]


def model(landing: Path, files: list[Path]) -> tuple[dict[Position, str], list[datetime | None], list[int]]:
    """What becomes of each usable event, the watermark of each batch, and how many rows it must remember."""
    verdicts: dict[Position, str] = {}
    marks: list[datetime | None] = []
    remembered: list[int] = []
    winners: dict[tuple[Any, ...], bytes] = {}
    newest: datetime | None = None
    for file in files:
        mark = newest - ALLOWED if newest else None
        marks.append(mark)
        remembered.append(sum(mark is None or identity[0] >= mark for identity in winners))
        offset = 0
        for raw in file.read_bytes().split(b"\n")[:-1]:
            position = (str(file.relative_to(landing)), offset)
            offset += len(raw) + 1
            verdict = oracle.judge_json(raw, f"{file.parent.parent.name[5:]}T{file.parent.name[5:]}")
            if verdict.reasons:
                continue
            assert verdict.time is not None
            newest = max(newest or verdict.time, verdict.time)
            identity = (verdict.time, *verdict.identity)
            if mark is not None and verdict.time < mark:
                verdicts[position] = "late"
            elif identity not in winners:
                verdicts[position] = "first"
                winners[identity] = raw
            else:
                verdicts[position] = "duplicate" if winners[identity] == raw else "conflict"
    return verdicts, marks, remembered


def told(deployment: Deployment) -> dict[Position, str]:
    """What became of each event, by the tables."""
    found = dict.fromkeys(deployment.rows(VISITS, "source_file", "source_offset"), "first")
    aside = deployment.rows(ASIDE, "source_file", "source_offset", "reason")
    assert found.keys().isdisjoint({row[:2] for row in aside})
    return {**found, **{(row[0], row[1]): row[2] for row in aside}}


def test_every_event_becomes_what_the_model_says(straight: Deployment) -> None:
    verdicts, _, _ = model(straight.landing, in_order(straight))
    assert told(straight) == verdicts
    assert set(verdicts.values()) == {"first", "late", "duplicate", "conflict"}
    counted = oracle.count(straight.landing)
    assert len(straight.rows(BRONZE, "raw")) == sum(hour.lines for hour in counted.arrivals.values())
    assert problems(straight) == []


def test_the_watermark_never_goes_back_and_bounds_what_the_stream_remembers(straight: Deployment) -> None:
    _, marks, remembered = model(straight.landing, in_order(straight))
    notes = [commit.info["appended"]["notes"] for commit in appended(straight.lake, VISITS)][::-1]
    assert [note["state_rows"] for note in notes] == remembered
    assert max(remembered) < len(straight.rows(VISITS, "raw")) / 2
    after = [datetime.fromisoformat(note["progress"]["watermark"]) for note in notes]
    assert after[:-1] == marks[1:]
    assert after == sorted(after)


def test_the_streamed_tables_are_the_batch_tables_row_for_row(straight: Deployment) -> None:
    assert straight.run(select=("bronze.visits", "silver.visits")).problems == []
    columns = [column.name for column in CONTRACTS["bronze.visits"].columns]
    assert sorted(straight.rows("bronze.visits", *columns), key=repr) == sorted(
        straight.rows(BRONZE, *columns), key=repr
    )
    columns = [column.name for column in STREAMED[VISITS].columns if column.name != "batch"]
    place_at = (columns.index("source_file"), columns.index("source_offset"))
    late = {position for position, reason in told(straight).items() if reason == "late"}
    # What came in order is the same; what came late the batch takes in, and the stream has set aside.
    batch = [row for row in straight.rows("silver.visits", *columns) if tuple(row[at] for at in place_at) not in late]
    assert sorted(batch, key=repr) == sorted(straight.rows(VISITS, *columns), key=repr)


def test_the_offsets_are_a_table_and_name_the_batch_of_every_row(straight: Deployment) -> None:
    folder = straight.settings.home / "checkpoints"
    rows = kept_rows(folder)
    assert [(row[2], row[6]) for row in rows] == [(0, True), (1, True), (2, True)]
    writer = checkpoints(folder)[0].writer
    named = {f"{writer}/{row[2]}": {str(Path(file).relative_to(straight.landing)) for file in row[5]} for row in rows}
    held: dict[str, set[str]] = {}
    for batch, file in straight.rows(BRONZE, "batch", "source_file"):
        held.setdefault(batch, set()).add(file)
    assert held == named


def test_nothing_new_is_nothing_to_do(straight: Deployment, expected: dict[str, Any]) -> None:
    before = straight.lake.versions(STREAMED)
    tick(straight)
    assert straight.lake.versions(STREAMED) == before


def test_another_stream_on_the_same_checkpoint_is_refused_before_spark_sees_it(straight: Deployment) -> None:
    before = straight.lake.versions(STREAMED)
    with pytest.raises(IncompatibleCheckpoint, match="key was"):
        tick(straight, replace(ONE_BY_ONE, key=("visit_id",)))
    assert straight.lake.versions(STREAMED) == before


CUTS = ((BRONZE, 0, "committed"), (ASIDE, 1, "committed"), (VISITS, 1, "written"), (BRONZE, 2, "committed"))


@pytest.fixture
def begun(world: Deployment, deploy: Deploy, request: pytest.FixtureRequest) -> Deployment:
    """The three hours, of which nothing is taken in."""
    made = deploy(f"live-{request.node.name}"[:60])
    made.copy_hours(world, HOURS)
    in_order(made)
    return made


def test_cut_off_anywhere_and_run_again_it_ends_in_the_same_tables(
    begun: Deployment, expected: dict[str, Any], tmp_path: Path
) -> None:
    for dataset, number, phase in CUTS:
        probe = tmp_path / f"{dataset}-{number}-{phase}"
        (probe / dataset / str(number)).mkdir(parents=True)
        (probe / dataset / str(number) / f"{phase}.fail").touch()
        with pytest.raises(StreamFailed, match=f"the write was ended at {phase}"):
            tick(begun, probe=str(probe))
    # The last one leaves lines whose events are not published, and its checkpoint is not gone on with.
    tick(begun, renew=True)
    assert contents(begun) == expected
    assert problems(begun) == []
    assert [checkpoint.number for checkpoint in checkpoints(begun.settings.home / "checkpoints")] == [1, 2]
    # Nor is anything doubled or lost when all checkpoints are.
    shutil.rmtree(begun.settings.home / "checkpoints")
    begun.land(HOURS[-1], [event("11:59", "/new")], name="zzz.json")
    tick(begun)
    assert len(begun.rows(BRONZE, "raw")) == len(expected[BRONZE]) + 1
    assert sorted(set(told(begun).values())) == ["conflict", "duplicate", "first", "late"]
    assert len(told(begun)) == len(expected[VISITS]) + len(expected[ASIDE]) + 1
    assert problems(begun) == []


def test_too_many_dead_letters_stop_the_stream_when_they_are_kept(deploy: Deploy) -> None:
    made = deploy("live-broken")
    good = [event("10:05", f"/{at}") for at in range(40)]
    made.land(HOURS[1], [*good, *[b"{"] * 1000])
    for _ in range(2):
        with pytest.raises(TooManyDeadLetters, match="1000 of 1040 rows"):
            tick(made)
        assert len(made.rows(BRONZE, "raw")) == 1040
        assert len(made.rows(VISITS, "raw")) == 40
    assert {reason for reasons in made.rows(BRONZE, "reasons") for reason in reasons} == {"not_json"}
    tick(made, accepted=frozenset({DEAD_LETTERS}))
    assert problems(made) == []
    assert [row[6] for row in kept_rows(made.settings.home / "checkpoints")] == [True]


def test_a_file_that_is_gone_stops_the_stream_and_back_again_is_taken_in(deploy: Deploy, tmp_path: Path) -> None:
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


def test_a_tick_of_dagster_reports_each_dataset_and_its_checks(deploy: Deploy) -> None:
    made = deploy("live-dagster")
    made.land(HOURS[1], [event("10:05", "/a"), event("10:05", "/a"), b"{"])
    with dg.instance_for_test() as instance:
        ran = dg.materialize([visits_live], resources=dict(connections(made.settings)), instance=instance)
        found = {
            event.asset_key: event.step_materialization_data.materialization.metadata
            for event in ran.get_asset_materialization_events()
        }
        assert {key: metadata["dagster/row_count"].value for key, metadata in found.items()} == {
            key_of(BRONZE): 3,
            key_of(VISITS): 1,
            key_of(ASIDE): 1,
        }
        checks = ran.get_asset_check_evaluations()
        assert {(check.check_name, check.passed) for check in checks} == {("contract", True), ("ledger", True)}
        assert len(checks) == 2 * len(STREAMED)
        again = dg.materialize([visits_live], resources=dict(connections(made.settings)), instance=instance)
        assert again.success
        assert list(again.get_asset_materialization_events()) == []


def test_the_command_takes_in_what_lands_until_it_is_told_to_end(deploy: Deploy) -> None:
    made = deploy("live-command")
    environment = {**os.environ, "BLOGDATA_HOME": str(made.settings.home)}
    command = [
        sys.executable,
        "-c",
        "from blogdata.main import main; main()",
        "stream",
        "silver.visits_live",
        "--every",
        "1",
        "--json",
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        # It may begin before anything has landed.
        _until(lambda: bool(checkpoints(made.settings.home / "checkpoints")), process)
        made.land(HOURS[1], [event("10:05", "/a")])
        _until(lambda: _pages(made) == ["/a"], process)
        with pytest.raises(streams.StreamBusy):
            tick(made, STREAM)
        made.land(HOURS[1], [event("10:06", "/b")], name="more.json")
        _until(lambda: _pages(made) == ["/a", "/b"], process)
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert json.loads(said) == {BRONZE: 2, VISITS: 2, ASIDE: 0}
    assert all(row[6] for row in kept_rows(made.settings.home / "checkpoints"))
    assert problems(made) == []


def _pages(deployment: Deployment) -> list[str]:
    return sorted(deployment.rows(VISITS, "page")) if deployment.lake.table(VISITS) is not None else []


def _until(condition: Any, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert process.poll() is None, "the command ended"
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture(scope="module")
def alone(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment that has a Spark server to itself."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_SPARK_MODE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        patch.setenv("BLOGDATA_SPARK_HEAP", "1g")
        patch.setenv("BLOGDATA_SPARK_START_SECONDS", "240")
        patch.setenv("BLOGDATA_JARS", str(settings.jars))
        made = Deployment.create(tmp_path_factory.mktemp("live-alone") / "home")
        yield made
        made.close()
        spark_connect.stop(made.settings)


def kills() -> list[tuple[str, int, str]]:
    """When the server dies, by the seed."""
    draw = random.Random(SEED)
    every = [(dataset, number, phase) for number in range(3) for dataset in STREAM.datasets for phase in PHASES]
    return sorted(draw.sample(every, 12), key=lambda one: one[1])


@pytest.mark.timeout(1800)
@pytest.mark.campaign
def test_the_server_killed_at_seeded_moments_leaves_the_tables_of_an_undisturbed_run(
    alone: Deployment, world: Deployment, expected: dict[str, Any], tmp_path: Path
) -> None:
    alone.copy_hours(world, HOURS)
    in_order(alone)
    hold = tmp_path / "probe"
    for dataset, number, phase in kills():
        print(f"seed {SEED}: the server is killed when batch {number} of {dataset} is {phase}")  # noqa: T201
        held = hold / dataset / str(number)
        held.mkdir(parents=True, exist_ok=True)
        (held / f"{phase}.hold").touch()
        running = _Tick(alone, hold)
        if running.reached(held / f"{phase}.reached"):
            server = spark_connect.ensure(SparkResource(home=str(alone.settings.home)).settings)
            kill(server.process)
        running.ended()
        (held / f"{phase}.hold").unlink()
    tick(alone)
    assert contents(alone) == expected
    assert problems(alone) == []


class _Tick:
    """A tick in a process of its own."""

    def __init__(self, deployment: Deployment, probe: Path) -> None:
        code = (
            "from pathlib import Path; from lineage import test_live_visits as live;"
            " from lineage.deployment import Deployment; from services import config;"
            f" live.tick(Deployment(settings=config.load()), probe={str(probe)!r})"
        )
        tests = str(Path(__file__).parent.parent)
        home = str(deployment.settings.home)
        environment = {**os.environ, "BLOGDATA_HOME": home, "PYTHONPATH": tests, "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE)

    def reached(self, marker: Path) -> bool:
        """Wait until a publication is held; False when the tick has ended before."""
        deadline = time.monotonic() + 300
        while not marker.exists():
            assert time.monotonic() < deadline
            if self._process.poll() is not None:
                return marker.exists()
            time.sleep(0.02)
        return True

    def ended(self) -> None:
        """Wait for its end, whichever it is: a server that was killed is an error to it."""
        self._process.communicate(timeout=300)
