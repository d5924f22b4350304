"""Corrected dead letters are landed once, in their hour, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patterns.core.partitions import Grain
from patterns.error_management import dead_letter_replay as replays
from patterns.error_management.dead_letter_replay import Correction, ReplayRefused
from patterns.ingestion.readiness_marker import scan

FILE = "visits/date=2026-01-05/hour=03/visits-0000.json"
CORRECTION = Correction(source_file=FILE, source_offset=17, payload='{"visit_id":"v"}')


def landed(landing: Path) -> dict[str, bytes]:
    return {str(path.relative_to(landing)): path.read_bytes() for path in landing.rglob("replay-*")}


def test_a_correction_lands_in_the_hour_of_its_dead_letter(tmp_path: Path) -> None:
    result = replays.land([CORRECTION], [(FILE, 17)], tmp_path)
    assert result.hours == ("2026-01-05T03",)
    assert landed(tmp_path) == {result.files[0]: b'{"visit_id":"v"}\n'}
    assert [partition.ready for partition in scan(tmp_path / "visits", Grain.HOUR)] == [True]


def test_replaying_twice_lands_the_same_and_a_better_correction_replaces_it(tmp_path: Path) -> None:
    first = replays.land([CORRECTION], [(FILE, 17)], tmp_path)
    again = replays.land([CORRECTION], [(FILE, 17)], tmp_path)
    assert again == first
    better = Correction(source_file=FILE, source_offset=17, payload='{"visit_id":"w"}')
    replays.land([better], [(FILE, 17)], tmp_path)
    assert list(landed(tmp_path).values()) == [b'{"visit_id":"w"}\n']


def test_what_is_no_dead_letter_is_refused_and_nothing_is_landed(tmp_path: Path) -> None:
    other = Correction(source_file=FILE, source_offset=99, payload="{}")
    with pytest.raises(ReplayRefused, match="99"):
        replays.land([CORRECTION, other], [(FILE, 17)], tmp_path)
    assert landed(tmp_path) == {}


def test_a_correction_may_be_given_as_an_object() -> None:
    line = json.dumps({"source_file": FILE, "source_offset": "17", "payload": {"page": "/é"}})
    assert replays.read([line, ""], "f") == [Correction(source_file=FILE, source_offset=17, payload='{"page": "/é"}')]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"source_file": "x"}', '{"source_file":"x","source_offset":1,"payload":"a\\nb"}']
)
def test_what_is_no_correction_is_named_with_its_line(line: str) -> None:
    with pytest.raises(ReplayRefused, match="line 1"):
        replays.read([line], "corrections.jsonl")


def test_a_file_outside_the_hours_is_refused() -> None:
    with pytest.raises(ReplayRefused, match="not a file of an hour"):
        _ = Correction(source_file="users/date=2026-01-05/users.json", source_offset=0, payload="{}").arrival_hour
