"""The simulator writes exactly the announced files, complete, once, and the same every time, also hours that are added.

What has landed keeps its bytes, and the truth covers all hours.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

import oracle
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.simulator.landing_zone import add, simulate
from blogdata.simulator.spec import FaultRates, SimulationSpec, load_faults
from blogdata.simulator.truth import Truth
from simulated import EVERY_FAULT, Killed, assert_truth_equals_the_recount, contents

NOW = datetime(2026, 2, 1, tzinfo=timezone.utc)
FAULTS = FaultRates.none(late=0.1, duplicate=0.05, conflict=0.05, not_json=0.05, empty_hour=0.06, missing_hour=0.06)
SPEC = SimulationSpec(days=1, visits_per_day=600, seed=11, faults=FAULTS, ads=True)
ADDED = 25


def dying_at(hour: int) -> Callable[[int, int], None]:
    def die(done: int, total: int) -> None:
        if done == hour:
            raise Killed

    return die


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    landing = tmp_path_factory.mktemp("faulty")
    spec = SimulationSpec(days=2, visits_per_day=3000, seed=11, faults=EVERY_FAULT, part_lines=40)
    return landing, simulate(spec, landing)


def test_the_truth_of_every_fault_equals_recounts(faulty: tuple[Path, Truth]) -> None:
    landing, truth = faulty
    recount = assert_truth_equals_the_recount(truth, landing)
    assert recount.reasons().keys() >= {
        "empty_line", "not_utf8", "too_large", "truncated", "not_json",
        *(f"missing_field:{name}" for name in oracle.REQUIRED),
        *(f"wrong_type:{name}" for name in (*oracle.REQUIRED, "keep_private", "context", "context.user")),
        "wrong_type:context.technical", "invalid_time:event_time",
        "invalid_time:context.user.connected_since", "impossible_time",
    }  # fmt: skip
    assert truth.total("late") > 100
    assert truth.total("conflicts") > 50
    assert truth.total("duplicates") > 2 * truth.total("conflicts") * 0.8
    assert {hour.state for hour in truth.hours} == {"landed", "empty", "missing"}


def test_a_landing_zone_with_real_data_is_refused(tmp_path: Path) -> None:
    hour = tmp_path / "visits" / "date=2026-01-05" / "hour=07"
    hour.mkdir(parents=True)
    (hour / "real.json").write_text("{}\n")
    with pytest.raises(PlatformError, match="no simulation wrote"):
        simulate(SimulationSpec(days=1, visits_per_day=200, seed=2), tmp_path)
    assert contents(tmp_path).keys() == {"visits/date=2026-01-05/hour=07/real.json"}


def test_a_killed_simulation_restarts_to_equal_bytes(tmp_path: Path) -> None:
    spec = SimulationSpec(days=2, visits_per_day=400, seed=8, faults=FAULTS)
    simulate(spec, tmp_path / "whole")
    for hour in (1, 24):
        with pytest.raises(Killed):
            simulate(spec, tmp_path / "killed", dying_at(hour))
    truth = simulate(spec, tmp_path / "killed")
    assert not truth.already_there
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_every_folder_is_flagged_without_partial_files(faulty: tuple[Path, Truth]) -> None:
    landing, _ = faulty
    folders = {path for source in ("visits", "users", "devices") for path in landing.glob(f"{source}/date=*")}
    assert len(folders) == 6
    for folder in [*landing.glob("visits/date=*/hour=*"), *landing.glob("users/*"), *landing.glob("devices/*")]:
        flag = folder / "_SUCCESS"
        assert flag.exists()
        assert all(path.stat().st_mtime_ns <= flag.stat().st_mtime_ns for path in folder.iterdir())
    assert not list(landing.rglob("*.partial"))
    assert not list(landing.rglob(".*"))


def landed(landing: Path) -> dict[str, str]:
    return {name: digest for name, digest in contents(landing).items() if not name.startswith("_")}


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day to which hours were added by one command."""
    landing = tmp_path_factory.mktemp("at_once")
    simulate(SPEC, landing)
    add(ADDED, landing, now=NOW)
    return landing


def test_hours_that_have_landed_keep_their_bytes(tmp_path: Path, at_once: Path) -> None:
    simulate(SPEC, tmp_path)
    for hours in (1, ADDED - 1):
        before = landed(tmp_path)
        truth = add(hours, tmp_path, now=NOW)
        assert before.items() < landed(tmp_path).items()
        assert_truth_equals_the_recount(truth, tmp_path)
    # Adding them with several commands gives the same hours, and the same counts.
    added, once = contents(tmp_path), contents(at_once)
    assert added.keys() == once.keys()
    assert {name for name, digest in once.items() if added[name] != digest} == {"_truth/spec.json"}


def test_a_killed_command_is_repeated_and_adds_its_hours_once(tmp_path: Path, at_once: Path) -> None:
    simulate(SPEC, tmp_path)
    with pytest.raises(Killed):
        add(ADDED, tmp_path, dying_at(40), now=NOW)
    assert landed(tmp_path) != landed(at_once)
    add(ADDED, tmp_path, now=NOW)
    assert contents(tmp_path) == contents(at_once)
    assert len(add(1, tmp_path, now=NOW).hours) == 24 + ADDED + 1, "a command that has ended is not repeated: it adds"


def test_a_faults_file_sets_only_named_rates(tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("duplicate = 0.25\nlate = 0 # none\n")
    assert load_faults(tmp_path / "faults") == FaultRates.none(duplicate=0.25)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("duplicates = 0.1", "duplicates: Unexpected"),
        ("duplicate = 1.5", "less than or equal to 1"),
        ("duplicate = nan", "finite"),
        ("duplicate = 0.6\nlate = 0.6", "add up to 1.2"),
        ("duplicate", "cannot be read"),
    ],
)
def test_a_wrong_faults_file_is_refused_with_reason(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "faults").write_text(text)
    with pytest.raises(ConfigurationError, match=says):
        load_faults(tmp_path / "faults")
