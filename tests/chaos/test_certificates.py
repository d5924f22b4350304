"""A certificate counts only kills on the code it names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chaos import certificates
from chaos.certificates import Kept, code_version

WRITER = "silver.visits"
EARLIER = "000000000000"
RIGHT = {"compared": 7, "lost": 0, "doubled": 0, "foreign": 0}


def round_of(code: str, number: int, *, seed: int = 1, kills: int = 1, **more: Any) -> str:
    hit = {"kill": {"writer": WRITER, "attempt": 0, "victim": "run", "moment": "opened"}}
    row = {
        "seed": seed,
        "code": code,
        "round": number,
        "ended_at": f"2026-01-0{number + 1}T00:00:00+00:00",
        "seconds": 2.0,
        "hits": [{**hit, "reached": "opened", "checkpoint": "none", "seconds": 2.0}] * kills,
        "differences": {WRITER: RIGHT},
        "counted": {},
        "twice": {},
        "problems": [],
    }
    return json.dumps({**row, **more}) + "\n"


@pytest.fixture
def rounds(tmp_path: Path) -> Path:
    now = code_version()
    lines = [
        round_of(EARLIER, 0, kills=2, problems=["something was left"]),
        round_of(now, 0, kills=3),
        round_of(now, 1, seed=2, differences={WRITER: {**RIGHT, "lost": 1}}),
    ]
    (tmp_path / "rounds.jsonl").write_text("".join(lines))
    return tmp_path


def test_kills_on_other_code_do_not_count(rounds: Path) -> None:
    kept = Kept(rounds, 1)
    assert (kept.hits[WRITER], kept.next_round) == (3, 1)
    (line,) = kept.certify([WRITER])
    assert f"{WRITER}: 4 kills (4 run; opened 4), 1 lost, 0 doubled, 0 foreign of 14 rows compared" in line
    assert line.endswith(f"2 rounds of seeds 1, 2, code {code_version()} 4")
    assert "PROBLEMS" not in line


def test_a_certificate_names_the_earlier_code_it_counts(rounds: Path) -> None:
    kept = Kept(rounds, 1, [EARLIER])
    assert kept.hits[WRITER] == 5
    (line,) = kept.certify([WRITER])
    assert "1 PROBLEMS" in line
    certificate = json.loads((rounds / f"{WRITER}.json").read_text())
    assert certificate["code"] == {EARLIER: 2, code_version(): 4}
    assert certificate["problems"] == ["something was left"]


def test_any_platform_change_gives_another_code_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(certificates, "ROOT", tmp_path)
    (tmp_path / "assets").mkdir()
    versions = [code_version()]
    for text in ("one = 1", "one = 2"):
        (tmp_path / "assets" / "new.py").write_text(text)
        versions.append(code_version())
    assert len(set(versions)) == 3
    (tmp_path / "README.md").write_text("What it is")
    assert code_version() == versions[-1]
