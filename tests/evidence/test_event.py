"""A publication is read back from the log as it was, although a part of it is parsed only when it is read."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from blogdata.evidence.event import entry_of

COUNTS = {"reasons": {"duplicates": 2}, "breakdowns": {"event_hours": [["2026-01-05T10", None, 3]]}}
WHEN = datetime(2026, 1, 5, tzinfo=timezone.utc)
REST = {
    "inputs": {"bronze.visits": 7},
    "landed": None,
    "outdates": ["2026-01-05T11"],
    "committed_at": WHEN.isoformat(),
}


@pytest.mark.parametrize("measure", ["conflicts", "inputs", 'odd", "inputs": {'])
@pytest.mark.parametrize("counts_first", [True, False])
def test_a_line_is_read_back_whatever_its_measures_are_called(measure: str, counts_first: bool) -> None:
    counts = {**COUNTS, "measures": {measure: 1}}
    payload = {**counts, **REST} if counts_first else {**REST, **counts}
    row = {
        "dataset": "silver.visits",
        "partition": "2026-01-05T10",
        "table_version": 4,
        "rows_in": 5,
        "rows_out": 3,
        "run_id": "run",
        "seconds": 1.0,
        "recorded_at": WHEN,
        "payload": json.dumps(payload),
    }
    entry = entry_of(row)
    assert entry.inputs == {"bronze.visits": 7}
    assert entry.makes_stale == ("2026-01-05T11",)
    assert entry.measures == {measure: 1}
    assert entry.reasons == {"duplicates": 2}
    assert entry.breakdowns == {"event_hours": {("2026-01-05T10", None): 3}}
    assert entry.missing == 0
    assert entry == entry_of(row)
