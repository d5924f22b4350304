"""Certificates of erasures are maintained and repaired as the other tables that the platform keeps for itself."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from blogdata.erasure.certificates import certificates, issue
from blogdata.erasure.cleared import Cleared
from blogdata.erasure.clearing import Clearing
from blogdata.erasure.search import Searched
from blogdata.evidence import compaction, own_tables
from blogdata.evidence.erasure_certificates import CERTIFICATES
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.maintenance import OWN, Due, Inspection, look
from blogdata.orchestration.upkeep import Vacuuming
from table_files import data_files, log_of

NOW = datetime(2026, 1, 5, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(root=str(tmp_path))
    for number in range(3):
        certify(lake, number)
    return lake


def certify(lake: Lake, number: int) -> None:
    done = Clearing(
        cleared=(Cleared(place="silver.letters", files=number),),
        searched=Searched(traces=(), unsearched=(), files=9, bytes=9),
        remaining=(),
    )
    issue(lake, f"erasure-{number}", NOW, "v1", ["a1b2"], done)


@pytest.mark.parametrize("part", ["row", "commit"])
def test_a_damaged_file_loses_no_certificate_but_its_own(lake: Lake, part: str) -> None:
    before = certificates(lake)
    file = min(data_files(lake, CERTIFICATES) if part == "row" else log_of(lake, CERTIFICATES).glob("*.json"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert [damage.file for damage in own_tables.inspect_own(lake, [])[CERTIFICATES]] == [file]
    done = own_tables.mend_own(lake, CERTIFICATES, [])
    assert own_tables.inspect_own(lake, []) == {}
    kept = certificates(lake)
    assert done == (
        "4 lines were taken from all of its files; certificates of 1 of its files are lost"
        if part == "row"
        else "6 lines were taken from all of its files; no file of it is lost"
    )
    assert len({line.certificate for line in kept}) == (2 if part == "row" else 3)
    assert [line for line in before if line in kept] == kept
    certify(lake, 3)
    assert len(certificates(lake)) == len(kept) + 2


def test_files_of_certificates_are_compacted_and_then_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 4)
    before = data_files(lake, CERTIFICATES)
    certify(lake, 3)
    assert len(certificates(lake)) == 8
    (contract,) = (one for one in OWN if one.dataset == CERTIFICATES)
    late = datetime.now(timezone.utc) + timedelta(days=30)
    seen = Inspection(lake=lake, events=EventLog(lake), now=late)
    (due,) = look(seen, [Vacuuming()], [contract])
    assert isinstance(due, Due)
    assert due.files == len(before) + 1
    own_tables.mend_own(lake, CERTIFICATES, [])
    assert len(certificates(lake)) == 8, "each certificate is taken from one of the files that have it"
