"""Damaged and lost files and tables are named, each with a remedy, after which every row is there as before."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable

import published
from blogdata.ledger import ledger
from blogdata.ledger.events import EVENTS, EventLog
from blogdata.operate import config, dagster_home
from blogdata.operate.config import Settings
from blogdata.planning import plan
from blogdata.planning.clock import now
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.lost_tables import take_log
from blogdata.table.faults import DataFileDamaged
from blogdata.table.lake import Lake
from blogdata.table.store import mismatch, sums_of
from blogdata.watch.findings import lost
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.origins import three_hours
from quality.contracts import CONTRACTS, GRAPH

UNREADABLE, GONE = "gold.requests_daily", "gold.sessions_daily"
MERGED, FLIPPED, OLDER = "silver.devices", "silver.late_visits", "silver.users"
LOST = ("bronze.visits", "bronze.devices", "silver.visit_conflicts", "silver.sessions", "silver.users_current")
"""A source, copies behind a pointer, a companion, a main table, one executed in order."""
AGAIN = (UNREADABLE, GONE, MERGED, FLIPPED, OLDER, *LOST[2:])
"""What is computed again, with everything upstream."""
BRONZE, ENRICHED = "bronze.visits", "silver.visits_enriched"
HOURS = ("2026-01-05T10", "2026-01-05T11")


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    return deploy.published("damage", three_hours)


def data_files(lake: Lake, dataset: str) -> list[Path]:
    return sorted(map(Path, DeltaTable(lake.path(dataset)).file_uris()))


def log_of(lake: Lake, dataset: str) -> Path:
    return Path(lake.path(dataset), "_delta_log")


def flip(file: Path, at: int, mask: int = 1) -> None:
    """Flip bits of one byte as a disk does: the size stays the same."""
    content = bytearray(file.read_bytes())
    content[at] ^= mask
    file.chmod(0o644)
    file.write_bytes(content)


def cut(file: Path) -> None:
    """Keep the first half of a file, as a power loss does."""
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.campaign
def test_what_is_damaged_or_lost_is_named_and_computed_again(said: Said, deployment: Deployment) -> None:
    before, versions, lake = deployment.contents(), deployment.versions(), deployment.lake
    assert "every file of its tables is whole" in said("doctor")[1]
    flipped, *_ = data_files(lake, FLIPPED)
    for at in range(0, flipped.stat().st_size, 97):
        flip(flipped, at)
        assert mismatch(flipped) == f"it differs from {sums_of(flipped).name}"
        flip(flipped, at)
    assert mismatch(flipped) is None
    flip(flipped, flipped.stat().st_size // 2)
    (gone,) = data_files(lake, GONE)
    gone.unlink()
    merged, *_ = data_files(lake, MERGED)
    cut(merged)
    cut(max(log_of(lake, UNREADABLE).glob("*.json")))
    # Readers say it, and return no other values.
    code, _, errors = said("sql", f"SELECT * FROM {GONE}")
    damaged = f"error: a data file is damaged: {gone}: it is gone, cut off or garbled"
    assert (code, errors.splitlines()[0]) == (1, damaged)
    assert str(flipped) in said("sql", f"SELECT * FROM {FLIPPED}")[2]
    with pytest.raises(DataFileDamaged, match="blogdata doctor"):
        deployment.contents_of(FLIPPED)
    # The ledger looks at names and sizes, doctor at every byte.
    problems = {line["dataset"]: line["problem"] for line in json.loads(said("ledger", "--json")[1]) if line["problem"]}
    assert problems.keys() == {GONE, MERGED, UNREADABLE}
    assert f"blogdata job replay dataset={GONE} partitions=2026-01-05" in problems[GONE]
    assert "move the folder of the table away" in problems[MERGED]
    looks = [look for look in json.loads(said("doctor", "--json")[1]) if look["name"] == "lake"]
    (replay,) = [look["detail"] for look in looks if look["detail"].startswith(f"{FLIPPED} ")]
    hour = flipped.parent.name.partition("=")[2]
    assert f"blogdata job replay dataset={FLIPPED} partitions={hour}" in replay
    (move,) = [look["next_step"] for look in looks if UNREADABLE in look["detail"]]
    assert "move the folder of the table away, and compute it again: blogdata run" in move
    # What they say is done.
    for name in (UNREADABLE, MERGED):
        shutil.move(lake.path(name), deployment.settings.home / name)
    code, _, errors = said("job", "replay", f"dataset={FLIPPED}", f"partitions={hour}")
    assert code == 0, errors
    for name in {dataset for main in LOST for dataset in GRAPH.task_of(main).datasets}:
        shutil.rmtree(lake.path(name))
    older(Path(lake.path(OLDER)))
    code, out, _ = said("run", "--for", OLDER)
    assert (code, f"{OLDER} is gone, or older than what was published of it" in out) == (1, True)
    shutil.rmtree(lake.path(OLDER))
    code, out, _ = said("ledger", "bronze.visits")
    assert (code, f"version {versions['bronze.visits']} was published" in out) == (1, True)
    assert ["bronze.visits"] in [run["datasets"] for run in json.loads(said("plan", "--json")[1])["runs"]]
    assert deployment.run(for_=AGAIN).problems == []
    assert deployment.contents() == before
    assert (deployment.problems(), deployment.run(for_=AGAIN).runs) == ([], 0)
    assert "every file of its tables is whole" in said("doctor")[1]
    # No reader takes a new version for one that it has read.
    after = deployment.versions()
    assert [name for name in (UNREADABLE, MERGED, *LOST) if after[name] <= versions[name]] == []


def older(folder: Path) -> None:
    """Put back what a table was before its newest version."""
    newest = max((folder / "_delta_log").glob("*.json"))
    for file in (newest, sums_of(newest), newest.with_suffix(".crc")):
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("harm", [shutil.rmtree, older], ids=["gone", "older"])
def test_a_lost_table_is_stale_and_its_versions_never_come_twice(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    home = published.deployment(tmp_path)
    lake, folder = home.lake, Path(home.lake.path(BRONZE))
    for hour in HOURS:
        published.land(home, "visits", hour, {"a.json": "{}\n"})
        version = published.bronze(lake, {hour: {hour: 1}})
    assert set(EventLog(lake).publications(BRONZE)) == set(HOURS)
    model = folder / ".model" / "1"
    DeltaTable.create(model, DeltaTable(folder).schema(), partition_by=["arrival_hour"])
    model = model.rename(tmp_path / "model")
    harm(folder)
    events = EventLog(lake)
    assert (events.gone(BRONZE), events.publications(BRONZE), events.publications(BRONZE, HOURS)) == (version, {}, {})
    look = Snapshot(home.landing_zone, events)
    (planned,) = (run for run in plan.Planner(graph=GRAPH, look=look).outstanding().runs if run.task.main == BRONZE)
    assert (planned.keys, dict(planned.reasons)) == (HOURS, {plan.NEW: 2})
    assert [table.dataset for table in lost(Observed(graph=GRAPH, look=look, now=now()))] == [BRONZE]
    (line,) = ledger.audit(lake, events, CONTRACTS[BRONZE])
    assert f"version {version} was published, and the table is gone or older" in str(line.problem)
    shutil.rmtree(folder, ignore_errors=True)
    events.begin_anew(BRONZE, version)
    (folder / ".model").mkdir(parents=True)
    take_log(folder, model.rename(folder / ".model" / "1"), version + 1)
    assert (lake.version(BRONZE), lake.row_counts(BRONZE, "arrival_hour")) == (version + 1, {})
    assert (events.publications(BRONZE), events.history(BRONZE), events.gone(BRONZE)) == ({}, [], -1)
    assert published.bronze(lake, {HOURS[0]: {HOURS[0]: 1}}) == version + 2
    assert list(events.publications(BRONZE)) == list(events.publications(BRONZE, since=HOURS[0])) == [HOURS[0]]
    assert [found.problem for found in ledger.audit(lake, events, CONTRACTS[BRONZE])] == [None]


class Home:
    """A home with two published hours, and its commands; returns exit code, stdout and stderr in one line each."""

    def __init__(self, path: Path, said: Said) -> None:
        self.path, self._said = path, said
        self.lake = published.deployment(path).lake

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code, out, errors = self._said(*arguments)
        return code, " ".join(out.split()), " ".join(errors.split())

    def problems(self) -> str:
        lines = self._said("doctor")[1].splitlines()
        found = [" ".join(pair) for pair in pairwise(lines) if pair[0].startswith("problem")]
        assert all("->" in line for line in found)
        return "\n".join(found)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Home:
    for variable in ("BLOGDATA_LANDING", "BLOGDATA_LAKE", "SPARK_REMOTE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path / "home"))
    made = Home(tmp_path / "home", Said(monkeypatch, capsys))
    read = published.bronze(made.lake, {hour: {hour: 1} for hour in HOURS})
    for hour in HOURS:
        published.enriched(made.lake, [hour], read=read)
        assert made("ledger")[0] == 0
    return made


@pytest.mark.parametrize("harm", [Path.unlink, cut], ids=["gone", "cut off"])
def test_the_ledger_goes_on_beside_a_damaged_table(home: Home, harm: Callable[[Path], None]) -> None:
    harm(file := data_files(home.lake, ENRICHED)[0])
    code, out, _ = home("ledger", ENRICHED)
    assert (code, str(file) in out.replace(" ", "")) == (1, True)
    assert f"blogdata job replay dataset={ENRICHED} partitions={HOURS[0]}" in out
    harm(min(log_of(home.lake, ENRICHED).glob("*.json")))
    code, out, errors = home("ledger")
    assert (code, BRONZE in out, ENRICHED in errors) == (1, True, True)
    assert "move the folder of the table away, and compute it again: blogdata run" in errors


@pytest.mark.parametrize("entry", [0, 1])
def test_an_event_log_that_is_moved_away_has_every_publication_again(home: Home, entry: int) -> None:
    before = home("ledger", "--json")[1]
    sorted(log_of(home.lake, EVENTS).glob("*.json"))[entry].unlink()
    for command in ("ledger", "plan"):
        code, _, errors = home(command)
        assert (code, "move the folder of the table away" in errors) == (1, True)
    assert home.problems().count("table's log is gone, cut off or garbled") == 1
    shutil.move(home.lake.path(EVENTS), home.path / "aside")
    assert home("ledger", "--json")[1] == before


STORAGE = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")


def open_dagster(loaded: Settings) -> None:
    with dagster_home.open_instance(loaded) as instance:
        assert instance.get_runs() == []
        assert list(instance.all_instigator_state()) == []


def garble(file: Path) -> None:
    file.write_bytes(b"\0" * 200 + file.read_bytes()[200:])


@pytest.mark.matrix(7)
@pytest.mark.parametrize("name", STORAGE)
def test_a_damaged_database_is_named_and_ends_a_run_with_one_error(home: Home, name: str) -> None:
    loaded, file = config.load(), home.path / "dagster" / name
    open_dagster(loaded)
    assert str(file) not in home.problems()
    garble(file)
    assert str(file) in home.problems()
    landing = LakeResource(root=home.lake.root, landing=str(home.path / "landing"))
    published.land(landing, "visits", HOURS[0], {"visits.json": "{}\n"})
    if "history" in name:
        code, _, errors = home("run")
        assert (code, "Traceback" in errors) == (1, False)
        assert errors.startswith("error: Dagster's storage cannot be read or written")
        assert "move the folder away" in errors
    (home.path / "dagster").rename(home.path / "aside")
    open_dagster(config.load())
    assert str(file) not in home.problems()
