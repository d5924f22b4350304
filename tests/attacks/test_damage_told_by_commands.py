"""Ledger, repair, doctor and run name damaged files, each with a remedy that works."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import published
from blogdata.cli.main import main
from blogdata.evidence.events import EVENTS
from blogdata.lake.lake import Lake
from blogdata.operations.repair import look, put_aside
from blogdata.orchestration import partner
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.services import config, dagster_home
from blogdata.services.config import Settings
from table_files import data_files, log_of
from toy import HOURS


class Said:
    """Runs a command in this process; returns its exit code, stdout and stderr."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._patch, self._capsys = home, patch, capsys
        self.lake = published.deployment(home).lake

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["blogdata", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        output = self._capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """The commands of a deployment with two published hours."""
    for variable in ("BLOGDATA_LANDING", "BLOGDATA_LAKE", "SPARK_REMOTE", "BLOGDATA_SPARK_MODE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path / "home"))
    made = Said(tmp_path / "home", monkeypatch, capsys)
    read = published.bronze(made.lake, {hour: {hour: 1} for hour in HOURS})
    for hour in HOURS:
        published.enriched(made.lake, [hour], read=read)
        assert made("ledger")[0] == 0
    return made


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-9])])
def test_the_ledger_names_a_file_that_is_gone_or_cut_off(said: Said, harm: Callable[[Path], None]) -> None:
    harm(file := data_files(said.lake, "silver.visits_enriched")[0])
    code, out, _ = said("ledger", "silver.visits_enriched")
    assert code == 1
    assert str(file) in out.replace("\n", "")
    assert "blogdata job repair" in out.replace("\n", " ")


def test_the_ledger_goes_on_beside_a_damaged_table(said: Said) -> None:
    min(log_of(said.lake, "silver.visits_enriched").glob("*.json")).unlink()
    code, out, err = said("ledger")
    assert (code, "bronze.visits" in out) == (1, True)
    assert "silver.visits_enriched" in err
    assert "blogdata job repair" in err


@pytest.mark.parametrize("entry", [0, 1, -1])
def test_a_lost_entry_of_the_event_log_is_mended(said: Said, entry: int) -> None:
    before = said("ledger", "--json")[1]
    sorted(log_of(said.lake, EVENTS).glob("*.json"))[entry].unlink()
    damaged = look(Lake(root=said.lake.root))
    assert [*damaged] == [EVENTS]
    if entry != -1:
        for command in ("ledger", "plan"):
            code, _, err = said(command)
            assert (code, "blogdata job repair" in err) == (1, True)
    if entry == 0:
        # The job, too, has to load without the event log.
        code, out, _ = said("job", "repair", "--json")
        assert (code, json.loads(out)["result"]["mended"]) == (0, True)
    else:
        done: list[str] = []
        assert put_aside(Lake(root=said.lake.root), damaged, None, done.append) == []
        assert "events were taken from all of its files and from the tables' commits" in done[0]
    assert said("ledger", "--json")[1] == before
    assert look(Lake(root=said.lake.root)) == {}


def garble(file: Path) -> None:
    file.write_bytes(b"\0" * 200 + file.read_bytes()[200:])


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100])


def open_dagster(loaded: Settings) -> None:
    with dagster_home.open_instance(loaded) as instance:
        assert instance.get_runs() == []
        assert list(instance.all_instigator_state()) == []


KEPT: dict[str, Callable[[Settings], object]] = {
    "partner.sqlite": lambda loaded: partner.outbox(loaded).taken([]),
}
STORAGE = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")


@pytest.mark.matrix(7)
@pytest.mark.parametrize("harm", [garble, halve])
@pytest.mark.parametrize("name", [*KEPT, *(f"dagster/{name}" for name in STORAGE)])
def test_doctor_names_a_damaged_database(said: Said, name: str, harm: Callable[[Path], None]) -> None:
    loaded, file = config.load(), said.home / name
    KEPT.get(name, open_dagster)(loaded)
    assert str(file) not in problems_of(said)
    harm(file)
    assert str(file) in problems_of(said)
    file.rename(file.with_name("aside"))
    assert str(file) not in problems_of(said)


def problems_of(said: Said) -> str:
    """Return the problems that doctor reports, each with its remedy."""
    lines = said("doctor")[1].splitlines()
    found = [" ".join(pair) for pair in pairwise(lines) if pair[0].startswith("problem")]
    assert all("->" in line for line in found)
    return "\n".join(found)


@pytest.mark.matrix(7)
@pytest.mark.parametrize("harm", [garble, halve])
@pytest.mark.parametrize("name", STORAGE[:2])
def test_a_run_without_its_history_is_one_error(said: Said, name: str, harm: Callable[[Path], None]) -> None:
    open_dagster(config.load())
    harm(said.home / "dagster" / name)
    published.land(LakeResource(root=said.lake.root, landing=str(said.home / "landing")), "visits", HOURS[0],
                   {"visits.json": "{}\n"})  # fmt: skip
    code, _, err = said("run")
    assert (code, "Traceback" in err) == (1, False)
    assert err.startswith("error: Dagster's storage cannot be read or written")
    assert "move the folder away" in " ".join(err.split())
    (said.home / "dagster").rename(said.home / "aside")
    open_dagster(config.load())
