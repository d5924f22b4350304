"""Unannounced fields of a producer: found in landed files, recorded once, reported until announced.

Pattern: Schema Compatibility Enforcer.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.landing import Landed
from blogdata.orchestration.step import Step
from blogdata.patterns.ingestion.new_fields import LONGEST, MOST, OTHERS, look, record, seen
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.patterns.security.fine_grained_accessor_for_resources import reach_of
from blogdata.planning.findings import unannounced
from blogdata.planning.graph import Graph
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.publish.column_types import parse_fields
from blogdata.publish.partitions import Grain
from blogdata.services import config
from quality.contracts import CONTRACTS, GRAPH, landed

HOUR = "2026-01-05T08"
EVENT: dict[str, Any] = {
    "visit_id": "v",
    "page": "/",
    "context": {"user": {"ip": "::1"}, "technical": {"browser": "Firefox"}},
}
LEGACY = {**EVENT, "scroll": 3, "context": {**EVENT["context"], "user": {"ip": "::1", "age": 42}}}


def write(file: Path, *lines: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)
    return file


def test_an_unannounced_field_is_found_by_its_path(tmp_path: Path) -> None:
    files = [write(tmp_path / name, EVENT, LEGACY, LEGACY) for name in ("a.json", "b.json.gz")]
    assert look(files, tmp_path, landed.VISIT) == ["context.user.age", "scroll"]


def test_columns_of_a_delivery_are_found(tmp_path: Path) -> None:
    file = write(tmp_path / "users.csv", b'id;"login";email;shoe_size', b"1;a;b;44")
    lines = write(tmp_path / "users.json", {"id": "1", "hat": {"size": 3}})
    assert look([file, lines], tmp_path, landed.USER) == ["hat", "shoe_size"]


def test_names_of_a_hostile_producer_are_short_and_can_be_printed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", {"\x1b[31mred": 1, "x" * 10_000: 1})
    found = look([file], tmp_path, landed.VISIT)
    assert found == ["x" * (LONGEST - 1) + "…", "\N{REPLACEMENT CHARACTER}[31mred"]


def test_a_field_is_recorded_once_and_only_so_many_are(tmp_path: Path) -> None:
    events = EventLog(Lake(root=str(tmp_path)))
    for hour in (HOUR, "2026-01-05T09"):
        record(events, "bronze.visits", {"scroll": hour}, run_id="r")
        assert seen(events, "bronze.visits") == {"scroll": HOUR}
    for start in range(0, 2 * MOST, 50):
        record(events, "bronze.visits", {f"n{at}": HOUR for at in range(start, start + 50)}, run_id="r")
    recorded = list(seen(events, "bronze.visits"))
    assert (len(recorded), recorded[-1]) == (MOST + 1, OTHERS)


def test_a_new_field_is_reported_until_announced(tmp_path: Path) -> None:
    zone, events = tmp_path / "landing", EventLog(Lake(root=str(tmp_path / "lake")))
    folder = zone / "visits" / "date=2026-01-05" / "hour=08"
    write(folder / "visits.json", EVENT, LEGACY)
    (folder / "_SUCCESS").touch()
    contract = CONTRACTS["bronze.visits"]
    run = SimpleNamespace(run_id="run-1")
    step = SimpleNamespace(
        contract=contract,
        reach=reach_of((contract,)),
        partitions=(HOUR,),
        landing=zone,
        landing_zone=LandingZone.of(zone),
        events=events,
        run=run,
        deployment=SimpleNamespace(settings=lambda: config.load({"BLOGDATA_HOME": str(tmp_path)})),
    )
    for _ in range(2):
        Landed.of(cast("Step", step), "visits", Grain.HOUR).announce_new_fields()

    def findings(graph: Graph) -> list[Any]:
        now = datetime.now(timezone.utc)
        return list(unannounced(Observed(graph=graph, look=Snapshot(zone, events), now=now)))

    (found,) = findings(GRAPH)
    assert (found.identity, found.owner) == (f"new_fields/bronze.visits/{HOUR}", "team:platform")
    assert "context.user.age, scroll" in found.what

    (read,) = contract.reads
    announced = replace(read, fields=(*read.fields, *new_field("scroll")))
    graph = Graph(contracts={**CONTRACTS, contract.dataset: replace(contract, reads=(announced,))})
    (found,) = findings(graph)
    assert "scroll" not in found.what


def new_field(name: str) -> Any:
    return parse_fields(f"{name} INT")
