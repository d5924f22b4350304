"""Long model runs are added up if they ran on the same code."""

from __future__ import annotations

from pathlib import Path

from laws import tally


def test_long_runs_are_added_up_per_code(tmp_path: Path) -> None:
    assert tally.keep({"run": 300, "crash": 100}, counterexample=False, folder=tmp_path).startswith("400 steps")
    said = tally.keep({"run": 7}, counterexample=True, folder=tmp_path)
    assert said == "407 steps on this code in 2 runs, 1 counterexamples: {'crash': 100, 'run': 307}"
    other = (tmp_path / "runs.jsonl").read_text().replace('"code": "', '"code": "not ')
    (tmp_path / "runs.jsonl").write_text(other)
    assert tally.keep({"run": 1}, counterexample=False, folder=tmp_path).startswith("1 steps")
