"""Certificates of erasures are maintained as the other tables that the platform keeps for itself."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from blogdata.erasure.certificates import certificates, issue
from blogdata.erasure.cleared import Cleared
from blogdata.erasure.clearing import Clearing
from blogdata.erasure.search import Searched
from blogdata.evidence.erasure_certificates import CERTIFICATES
from blogdata.evidence.events import EventLog
from blogdata.lake import store
from blogdata.lake.lake import Lake
from blogdata.orchestration.maintenance import OWN, Due, Inspection, look
from blogdata.orchestration.vacuuming import Vacuuming
from table_files import data_files

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


def test_files_of_certificates_are_compacted_and_then_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "COMPACT_EVERY", 4)
    before = data_files(lake, CERTIFICATES)
    certify(lake, 3)
    assert len(certificates(lake)) == 8
    (contract,) = (one for one in OWN if one.dataset == CERTIFICATES)
    late = datetime.now(timezone.utc) + timedelta(days=30)
    seen = Inspection(lake=lake, events=EventLog(lake), now=late)
    (due,) = look(seen, [Vacuuming()], [contract])
    assert isinstance(due, Due)
    assert due.files == len(before) + 1
