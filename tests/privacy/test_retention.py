"""The job `retention` enforces the days that the contracts promise; `only_plan` shows what would leave."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from blogdata.contract.partitions import Grain
from blogdata.planning import clock
from blogdata.planning.plan import Selection
from blogdata.runs.lake_resource import LakeResource
from lineage.command_line import Said
from published import deployment, land, planner, publish

HOURS = {"2026-01-05T00": 3, "2026-01-05T01": 4}
FIRST, SECOND = HOURS
TWO_YEARS_LATER = datetime(2028, 1, 5, 1, tzinfo=timezone.utc)


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    made = deployment(tmp_path / "blog")
    for key in HOURS:
        land(made, "visits", key, {"visits.json": "a line"})
    landed = {part.key: part.fingerprint for part in made.landing_zone.scan("visits", Grain.HOUR)}
    keys = [key for key, rows in HOURS.items() for _ in range(rows)]
    content = pa.table({"arrival_hour": keys, "row": range(len(keys))})
    measures = {hour: {"dead": 0} for hour in HOURS}
    breakdowns = {"event_hours": [[key, key, None, "json", rows] for key, rows in HOURS.items()], "reasons": []}
    more = {"landed": landed, "content": content, "measures": measures, "breakdowns": breakdowns}
    publish(made.lake, "bronze.visits", "arrival_hour", HOURS, **more)
    return made


@pytest.fixture
def said(home: LakeResource, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.setenv("BLOGDATA_HOME", str(home.landing_path.parent))
    return Said(monkeypatch, capsys)


def result(said: Said, *config: str) -> dict[str, Any]:
    code, out, errors = said("job", "retention", *config, "--json")
    assert (code, errors) == (0, "")
    found: dict[str, Any] = json.loads(out)["result"]
    return found


def test_what_is_older_than_its_contract_keeps_it_is_shown_and_leaves(
    home: LakeResource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert result(said)["rows_expired"] == 0
    assert home.lake.row_counts("bronze.visits", "arrival_hour") == HOURS
    expired = {"dataset": "bronze.visits", "partitions": 1, "rows": 3, "first": FIRST, "last": FIRST}
    with monkeypatch.context() as later:
        later.setattr(clock, "now", lambda: TWO_YEARS_LATER)
        planned = result(said, "only_plan=true")
        assert (planned["removed"], planned["partitions"]) == (False, [expired])
        assert home.lake.row_counts("bronze.visits", "arrival_hour") == HOURS
        done = result(said)
    assert (done["removed"], done["partitions"], done["landed_partitions_removed"]) == (True, [expired], 1)
    assert not (home.landing_path / "visits" / "date=2026-01-05" / "hour=00").exists()
    assert home.lake.row_counts("bronze.visits", "arrival_hour") == {SECOND: 4}
    kept = Selection(select=["bronze.visits"]).require_kept(planner(home.lake))
    assert (kept[0], [error.what for error in kept[1]]) == (2, [f"{FIRST} has expired: its rows have left the table"])
    code, _, error = said("run", "--from", FIRST, "--to", SECOND, "--select", "bronze.visits")
    assert (code, f"error: {FIRST} has expired: its rows have left the table" in error.splitlines()) == (1, True)
    assert not (home.landing_path.parent / "services" / "spark").exists(), "Spark was not started"
