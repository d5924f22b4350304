"""Late rows are added to their hours, and what the tables then hold is what computing all of it at once gives.

Patterns: Windowed Deduplicator, Data Overwrite, Dynamic Late Data Integrator.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from blogdata.contract.publication import Entry
from blogdata.runs import driver
from blogdata.runs.computation import run_context
from blogdata.table import arrow, members
from blogdata.table.members import Member
from blogdata.table.target import RunContext
from lineage import expected
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.worker import obey

# The tests go on from each other: `make laws` has all of them, not campaigns alone.
pytestmark = pytest.mark.matrix(1)
VISITS, CONFLICTS = "silver.visits", "silver.visit_conflicts"
ENRICHED = "silver.visits_enriched"
WEEKLY = "gold.visits_weekly"
BY_THE_HOUR = (VISITS, CONFLICTS, ENRICHED)
"""The tables to which rows are added, with a companion, and one that reads them by the hour."""
ONLY: Mapping[str, Any] = {"for_": (VISITS,)}
"""A run for tests that look at no other table."""


def hour(of: int) -> str:
    return f"2026-01-{5 + of // 24:02}T{of % 24:02}"


@dataclass
class World:
    """A deployment that runs after every arrival; the next hour of arrival is `now`."""

    deployment: Deployment
    now: int = 10
    printed: Mapping[str, int] = field(default_factory=dict)
    """The rows that the last run printed of each dataset."""

    def arrive(self, *lines: bytes, how: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Entry]:
        """Land the next hour, with a row of its own, and run; gives what that published of the visits, by hour."""
        self.land(*lines)
        return self.run(**how)

    def land(self, *lines: bytes) -> None:
        own = event("", f"/own{self.now}", event_time=f"{hour(self.now)}:01:00Z")
        self.deployment.land(hour(self.now), [own, *lines])
        self.now += 1

    def run(self, **how: Any) -> dict[str, Entry]:
        """Run what is stale; gives what that published of the visits, by hour."""
        before = self.deployment.versions().get(VISITS, -1)
        outcome = self.deployment.run(**(how or {"for_": (ENRICHED,)}))
        assert outcome.problems == []
        self.printed = {one["dataset"]: one["rows"] for one in outcome.steps}
        return self.since(before)

    def since(self, version: int) -> dict[str, Entry]:
        found = self.deployment.published(VISITS)
        return {key[-2:]: entry for key, entry in found.items() if entry.version > version and key < hour(24)}

    @property
    def newest(self) -> str:
        return hour(self.now - 1)

    @property
    def own(self) -> str:
        return self.newest[-2:]

    def members(self) -> list[Member]:
        """Give the two newest states of the week's table that readers have seen."""
        return sorted(members.seen(self.deployment.lake, WEEKLY).all, key=lambda one: one.since_version)[-2:]

    def files(self, dataset: str = VISITS) -> dict[str, set[str]]:
        table = self.deployment.lake.caught_up(dataset)
        assert table is not None
        found: dict[str, set[str]] = {}
        for one in arrow.rows_of(table.get_add_actions(flatten=True), ["path", "partition.event_hour"]):
            found.setdefault(one["partition.event_hour"][-2:], set()).add(one["path"])
        return found

    def stands_for(self, page: str) -> list[int]:
        return [count for name, count in self.deployment.rows(VISITS, "page", "occurrences") if name == page]


def enriched(world: World) -> dict[str, int]:
    """Give the rows that the newest version of the enriched visits added, by hour."""
    found = world.deployment.published(ENRICHED)
    newest = max(entry.version for entry in found.values())
    return added({key[-2:]: entry for key, entry in found.items() if entry.version == newest})


def added(entries: dict[str, Entry]) -> dict[str, int]:
    """Give the rows that were added, by hour, of the hours to which rows were only added."""
    return {key: entry.rows_written for key, entry in entries.items() if entry.added and not entry.added.rewritten}


def whole(entries: dict[str, Entry]) -> set[str]:
    return entries.keys() - added(entries).keys()


def cut_off(
    world: World, folder: Path, phase: str, *lines: bytes, of: str = VISITS, how: Mapping[str, Any] = ONLY
) -> None:
    """Land the next hour and run, with an end to the write of a table when it has come to a phase."""
    (folder / "probe").mkdir()
    (folder / "probe" / f"{phase}.fail").touch()
    world.land(*lines)
    with pytest.MonkeyPatch.context() as patch:
        obey(patch, folder / "probe", of)
        assert world.deployment.run(**how).problems != []


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> World:
    """Four hours of arrival, published by one run; the tests of this module go on from each other."""
    made = World(deploy("slices"))
    made.deployment.land(hour(10), [event("10:01", "/own10"), event("10:05", "/a"), event("10:06", "/b")])
    made.deployment.land(hour(11), [event("11:01", "/own11"), event("11:05", "/c"), event("10:07", "/d")])
    made.deployment.land(hour(12), [event("12:01", "/own12")])
    made.now = 13
    assert whole(made.arrive()) == {"10", "11", "12", "13"}
    return made


def test_late_rows_are_added_once_and_nothing_else_is_written(world: World, tmp_path: Path) -> None:
    """Though the write is cut off; a late duplicate is counted, a late conflict kept beside its row."""
    before, version = world.files(), world.deployment.versions()[VISITS]
    duplicate, conflict = event("12:01", "/own12"), event("13:01", "/own13", user_id="another")
    twice = event("11:40", "/new")
    cut_off(world, tmp_path, "committed", event("10:30", "/late"), twice, twice, duplicate, conflict)
    assert added(world.run()) == {}, "the rows that the dead run has added are there"
    found = world.since(version)
    assert (added(found), whole(found)) == ({"10": 1, "11": 1}, {"12", "13", "14"}), "new rows may repeat each other"
    assert (found["10"].rows_in, found["10"].rows_out) == (5, 5), "the account is of the whole hour"
    assert found["10"].added is not None
    assert found["10"].added.slices == (hour(14),)
    after = world.files()
    assert {key: len(after[key] - before.get(key, set())) for key in after} == dict.fromkeys(after, 1)
    assert all(before[key] < after[key] for key in ("10", "11")), "the files of the hours stay"
    assert [world.stands_for(page) for page in ("/late", "/new", "/own12")] == [[1], [2], [2]]
    assert world.deployment.rows(CONFLICTS, "page", "event_hour") == [("/own13", hour(13))]
    assert enriched(world) == {"10": 1, "11": 1}
    assert world.printed[ENRICHED] == 3, "duplicates add no row: what reads their hours is not stale"
    assert not added(world.deployment.published(CONFLICTS)), "the companion's hours are replaced"
    assert world.deployment.problems() == []


@pytest.mark.campaign
def test_rows_that_a_week_lacks_are_added_to_its_table(world: World, tmp_path: Path) -> None:
    """Those of a new hour and those that were added to its hours; a dead run's rows are not there twice."""
    week, weeks = "2026-01-05", {"for_": (ENRICHED, WEEKLY)}
    world.run(**weeks)
    before = world.deployment.published(WEEKLY)[week]
    world.arrive(event("10:31", "/week"), how=weeks)
    found = world.deployment.published(WEEKLY)[week]
    assert found.added is not None
    assert found.added.slices == (f"{hour(10)} {world.newest}", world.newest)
    assert (world.printed[WEEKLY], found.rows_out - before.rows_out, found.rows_in) == (2, 2, found.rows_out)
    assert weekly(world) == sorted(world.deployment.rows(ENRICHED, "event_time", "page", "user_id"))
    (old, new) = world.members()
    assert (old.location, old.version < new.version) == (new.location, True)
    repeated = world.arrive(event("10:31", "/week"), event("10:33", "/again"), how=weeks)
    assert repeated["10"].rows_written == repeated["10"].rows_out, "a repeated row is counted where it was first"
    assert (enriched(world), world.printed[WEEKLY]) == ({"10": 1}, 2), "those who read the hour get the new row"
    assert weekly(world) == sorted(world.deployment.rows(ENRICHED, "event_time", "page", "user_id"))
    found = world.deployment.published(WEEKLY)[week]
    cut_off(world, tmp_path, "committed", event("10:32", "/dead"), of=WEEKLY, how=weeks)
    assert world.deployment.published(WEEKLY)[week] == found, "the pointer names the version before"
    assert weekly(world) != sorted(world.deployment.rows(ENRICHED, "event_time", "page", "user_id"))
    world.run(**weeks)
    assert world.deployment.published(WEEKLY)[week].added is None
    assert weekly(world) == sorted(world.deployment.rows(ENRICHED, "event_time", "page", "user_id"))
    assert world.deployment.problems() == []


def weekly(world: World) -> list[tuple[Any, ...]]:
    return sorted(world.deployment.rows(WEEKLY, "event_time", "page", "user_id"))


@pytest.mark.campaign
def test_hours_of_other_code_are_computed_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(*arguments: Any) -> RunContext:
        return replace(run_context(*arguments), code_version="newer")

    with monkeypatch.context() as patch:
        patch.setattr(driver, "run_context", newer)
        assert "10" in whole(world.arrive(event("10:45", "/newer"), how=ONLY))
    assert "10" in whole(world.arrive(event("10:46", "/older"), how=ONLY))


def test_hours_that_are_lost_or_damaged_are_computed_whole(world: World) -> None:
    """No other hour is: rows are added to it; and none of the enriched visits, as their users are new."""
    user = {"id": "user-/users", "login": "one", "registered_datetime": "2026-01-01T00:00:00Z"}
    world.deployment.deliver("users", "2026-01-05", [json.dumps(user).encode()])
    (lost, *_), (damaged, *_) = (world.files()[key] for key in ("11", "12"))
    (Path(world.deployment.lake.path(VISITS)) / lost).unlink()
    file = Path(world.deployment.lake.path(VISITS)) / damaged
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    found = world.arrive(*(event(f"{of}:48", "/mends", user_id="user-/users") for of in (11, 12, 13)))
    assert (added(found), whole(found)) == ({"13": 1}, {"11", "12", world.own})
    assert enriched(world) == {}, "what is added is joined as the rows that are there"
    assert damaged not in world.files()["12"]
    equals_plain_python(world, *BY_THE_HOUR)


@pytest.mark.campaign
def test_an_hour_that_somebody_else_has_changed_is_computed_whole(world: World) -> None:
    with world.deployment.session() as spark:
        table = f"delta.`{world.deployment.lake.path(VISITS)}`"
        spark.sql(f"UPDATE {table} SET page = '/wrong' WHERE page = '/a'").collect()
    assert world.stands_for("/wrong") == [1]
    assert added(world.arrive(event("10:49", "/mended"), how=ONLY)) == {}
    assert (world.stands_for("/wrong"), world.stands_for("/a")) == ([], [1])
    equals_plain_python(world, VISITS, CONFLICTS)


def equals_plain_python(world: World, *datasets: str) -> None:
    """Compare tables with what plain Python computes of all lines at once."""
    for dataset, rows in expected.of(world.deployment.landing, *datasets).items():
        assert expected.found(world.deployment, dataset) == rows, dataset
    assert world.deployment.problems() == []


@pytest.mark.campaign
def test_the_tables_equal_those_of_a_deployment_that_computes_all_of_it_at_once(world: World, deploy: Deploy) -> None:
    assert world.deployment.run().problems == []
    assert (world.deployment.problems(), world.deployment.run().runs) == ([], 0)
    fresh = deploy("fresh")
    shutil.copytree(world.deployment.landing, fresh.landing, dirs_exist_ok=True)
    assert fresh.run().problems == []
    assert world.deployment.contents() == fresh.contents()
    assert not any(entry.added for dataset in (VISITS, ENRICHED) for entry in fresh.published(dataset).values())
