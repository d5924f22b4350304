"""Dead-Letter: file names of corrections, for streams that read no name twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.patterns.error_management import dead_letter_replay as replays
from blogdata.patterns.error_management.dead_letter_replay import Correction
from quality.contracts import CONTRACTS

HOUR = Path("visits/date=2026-01-05/hour=03")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / HOUR
    folder.mkdir(parents=True)
    for name in ("visits.json", "access.log", "_SUCCESS"):
        (folder / name).touch()
    return tmp_path


def land(landing: Path, payload: str, name: str = "visits.json") -> str:
    """Land a correction of one line, as the only one; return its file name."""
    place = str(HOUR / name)
    replays.land_corrections(
        [Correction(source_file=place, source_offset=17, payload=payload)],
        [(place, 17)],
        landing,
        letters=CONTRACTS["bronze.dead_letters"],
    )
    (file,) = (landing / HOUR).glob("replay-*")
    assert file.read_text() == payload + "\n"
    return file.name


@pytest.mark.parametrize("name", ["visits.json", "access.log"])
def test_a_better_correction_gets_a_new_name(landing: Path, name: str) -> None:
    first, better = land(landing, "{}", name), land(landing, "[]", name)
    assert first != better
    assert first[:23] == better[:23], "the dead letter it corrects"
    assert land(landing, "{}", name) == first
    assert first.endswith(Path(name).suffix)


def test_a_correction_named_only_by_line_is_replaced(landing: Path) -> None:
    name = land(landing, "{}")
    (landing / HOUR / name).rename(landing / HOUR / f"{name[:23]}.json")
    assert land(landing, "[]") != name
