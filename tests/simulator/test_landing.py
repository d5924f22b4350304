"""The simulator writes exactly the announced files, complete, once, and the same every time."""

from __future__ import annotations

from pathlib import Path

import pytest

import oracle
from blogdata.errors import PlatformError
from blogdata.simulator.landing_zone import simulate
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import Truth
from simulated import EVERY_FAULT, Killed, assert_truth_equals_the_recount, contents


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
    spec = SimulationSpec(days=2, visits_per_day=400, seed=8, faults=EVERY_FAULT)
    simulate(spec, tmp_path / "whole")
    for hour in (1, 24):

        def die(done: int, total: int, at: int = hour) -> None:
            if done == at:
                raise Killed

        with pytest.raises(Killed):
            simulate(spec, tmp_path / "killed", die)
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
