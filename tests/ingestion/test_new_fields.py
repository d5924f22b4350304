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

from blogdata.cli.outcome import Outcome, add_findings
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.landing import Landed
from blogdata.orchestration.step import Step
from blogdata.patterns.ingestion.new_fields import LONGEST, MOST, MOST_NAMES, OTHERS, NewField, look, record, seen
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.patterns.security.fine_grained_accessor_for_resources import reach_of
from blogdata.planning.findings import unannounced
from blogdata.planning.graph import Graph
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.publish.column_types import parse_fields
from blogdata.publish.partitions import Grain
from blogdata.services import config
from quality.contracts import CONTRACTS, GRAPH, LANDED, landed

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


def names(tmp_path: Path, *files: Path, fields: Any = landed.VISIT) -> dict[str, int]:
    return dict(look(files, tmp_path, fields).names)


def test_an_unannounced_field_is_found_by_its_path(tmp_path: Path) -> None:
    files = [write(tmp_path / name, EVENT, LEGACY, LEGACY) for name in ("a.json", "b.json.gz")]
    found = look(files, tmp_path, landed.VISIT)
    assert (found.lines, found.names) == (6, {"context.user.age": 4, "scroll": 4})


def test_columns_of_a_delivery_are_found(tmp_path: Path) -> None:
    file = write(tmp_path / "users.csv", b'id;"login";email;shoe_size', b"1;a;b;44")
    lines = write(tmp_path / "users.json", {"id": "1", "hat": {"size": 3}})
    assert names(tmp_path, file, lines, fields=landed.USER) == {"shoe_size": 1, "hat": 1}


def test_a_hostile_producer_names_only_so_much(tmp_path: Path) -> None:
    hostile = [{f"{number}-{inner}": 1 for inner in range(200)} for number in range(300)]
    odd = {"\x1b[31mred": 1, "x" * 10_000: 1}
    found = names(tmp_path, write(tmp_path / "a.json", *hostile, odd), write(tmp_path / "b.json", *[odd] * 9))
    assert len(found) == MOST_NAMES
    assert found["\N{REPLACEMENT CHARACTER}[31mred"] >= 9
    assert max(map(len, found)) == LONGEST


def field(name: str, partition: str = HOUR) -> NewField:
    return NewField(
        dataset="bronze.visits",
        name=name,
        partition=partition,
        lines=3,
        looked_at=4,
        seen_at=datetime.now(timezone.utc),
    )


def test_a_field_is_recorded_once(tmp_path: Path) -> None:
    events = EventLog(Lake(root=str(tmp_path)))
    first = field("scroll")
    assert record(events, [first], run_id="r1") == [first]
    assert record(events, [field("scroll", "2026-01-05T09")], run_id="r2") == []
    assert seen(events, "bronze.visits") == [first]
    assert record(events, [], run_id="r3") == []


def test_the_record_of_fields_is_bounded(tmp_path: Path) -> None:
    events = EventLog(Lake(root=str(tmp_path)))
    for start in range(0, 2 * MOST, 50):
        record(events, [field(f"n{number}") for number in range(start, start + 50)], run_id="r")
    recorded = [one.name for one in seen(events, "bronze.visits")]
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

    outcome = Outcome(seconds=60)
    add_findings(outcome, LANDED.values(), LandingZone.of(zone), events)
    assert [line for line in outcome.warnings if "new fields (context.user.age, scroll)" in line]
    later = Outcome(seconds=0)
    add_findings(later, LANDED.values(), LandingZone.of(zone), events)
    assert not [line for line in later.warnings if "new fields" in line]

    (read,) = contract.reads
    announced = replace(read, fields=(*read.fields, *new_field("scroll")))
    graph = Graph(contracts={**CONTRACTS, contract.dataset: replace(contract, reads=(announced,))})
    (found,) = findings(graph)
    assert "scroll" not in found.what


def new_field(name: str) -> Any:
    return parse_fields(f"{name} INT")
