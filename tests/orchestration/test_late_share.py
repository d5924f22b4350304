"""Late Data Detector: a stream whose newest rows are mostly late gives a warning and continues."""

from __future__ import annotations

import dagster as dg

from blogdata.lake.commit import Commit, Entry
from blogdata.orchestration.late_share import late_share_result

KEY = dg.AssetKey(["silver", "visits_live"])


def batch(version: int, late: int, rows: int) -> Commit:
    """Build a batch of two hours, one with the late rows."""
    entries = {
        hour: Entry(
            dataset="silver.visits_live",
            partition=hour,
            version=version,
            rows_in=of,
            rows_out=of - behind,
            reasons={"late": behind} if behind else {"duplicate": 0},
        )
        for hour, of, behind in (("2026-01-05T09", late, late), ("2026-01-05T10", rows - late, 0))
    }
    return Commit(dataset="silver.visits_live", version=version, entries=entries, info={})


def test_mostly_late_newest_rows_give_a_warning() -> None:
    result = late_share_result(KEY, [batch(3, 700, 800), batch(2, 0, 300), batch(1, 0, 9000)])
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "700 of the newest 1100 rows" in str(result.description)


def test_few_or_old_late_rows_give_no_warning() -> None:
    assert late_share_result(KEY, [batch(1, 500, 1000)]).passed
    assert late_share_result(KEY, [batch(1, 999, 999)]).passed
    assert late_share_result(KEY, [batch(2, 0, 1000), batch(1, 9000, 9000)]).passed
    assert late_share_result(KEY, []).passed
