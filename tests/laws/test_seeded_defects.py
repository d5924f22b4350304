"""Harmful changes of ledger, planner and publication are noticed: each is made, and a test of the suite then fails.

A defect replaces a function of the platform. An error is no notice: the test must fail by an assertion, or because
something was not refused.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.partitions import Grain, coarser
from blogdata.contract.publication import Entry
from blogdata.ledger import ledger
from blogdata.ledger.claims import Claim, Claims
from blogdata.ledger.events import EventLog
from blogdata.patterns.error_management.dynamic_late_data_integrator import PartitionState
from blogdata.planning import expired, reach
from blogdata.planning.staleness import Staleness
from blogdata.table import observed
from blogdata.table.audit import weigh
from blogdata.table.committer import OpenCommit, Whole
from blogdata.table.lake import Lake
from laws import test_laws
from laws.test_laws import World, begun
from ledger import test_claims, test_ledger
from ledger.test_ledger import lake as counted
from patterns import test_dynamic_late_data_integrator
from unit import test_expired, test_plan_of_a_replay, test_stale_hours
from unit.test_expired import published
from unit.test_reaches import hours

__all__ = ("begun", "counted", "hours", "published")
Seed = Callable[[pytest.MonkeyPatch], None]
DEFECTS: dict[str, Defect] = {}


@dataclass(frozen=True)
class Defect:
    """A harmful change, and a test that must fail; `writer` names the writer whose law that is."""

    seed: Seed
    noticed_by: Callable[..., None]
    given: dict[str, Any]
    """Values of the test's parameters, of `lake` the name of a fixture; all others are fixtures."""
    writer: str


def defect(noticed_by: Callable[..., None], writer: str = "", **given: Any) -> Callable[[Seed], Seed]:
    """Declare a defect; the name of its function says what it does."""

    def declare(seed: Seed) -> Seed:
        DEFECTS[seed.__name__.replace("_", " ")] = Defect(seed, noticed_by, given, writer)
        return seed

    return declare


@defect(test_ledger.test_an_unbalanced_account_names_the_difference, above=3, problem="2 rows of the layer above")
def rows_that_vanished_between_two_layers_are_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = Entry.missing
    monkeypatch.setattr(Entry, "missing", property(lambda self: min(0, missing.fget(self))))


@defect(test_ledger.test_rows_deleted_or_added_outside_the_platform_are_found, lake="counted")
def rows_that_are_gone_from_a_table_are_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_problem", lambda entry, rows_there: None)


@defect(test_ledger.test_a_crash_before_recording_loses_no_event_and_adds_none_twice, lake="counted")
def a_commit_whose_process_died_before_it_was_recorded_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventLog, "_project", lambda *given: [])


@defect(test_claims.test_one_run_takes_a_partition_until_its_release)
def a_claim_is_taken_whoever_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: Claims, partitions: list[str], owner: str) -> list[str]:
        now = datetime.now(timezone.utc)
        mine = {key: Claim(partition=key, owner=owner, taken_at=now) for key in partitions}
        self._change(lambda claims: {**claims, **mine})
        return sorted(partitions)

    monkeypatch.setattr(Claims, "take", take)


@defect(test_claims.test_a_dead_owners_partitions_are_free)
def the_dead_hold_their_claims_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Claims.__init__
    monkeypatch.setattr(
        Claims, "__init__", lambda self, lake, dataset, alive: begin(self, lake, dataset, alive=lambda claim: True)
    )


@defect(test_claims.test_a_claim_on_a_stale_view_is_retried)
def a_claim_that_failed_is_taken_for_made(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Claims._write
    monkeypatch.setattr(Claims, "_write", lambda self, *given: write(self, *given) or True)


@defect(test_stale_hours.test_any_hour_of_a_day_makes_it_stale)
def a_period_is_stale_only_when_its_newest_hour_is_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    def required(self: reach.Within, look: Any, edge: Any) -> dict[str, int]:
        hours = sorted(look.published(edge.above).items())
        return {coarser(hour, Grain.HOUR, edge.grain): entry.version for hour, entry in hours}

    monkeypatch.setattr(reach.Within, "required", required)


@defect(test_dynamic_late_data_integrator.test_vanished_source_rows_put_their_hour_behind)
def rows_that_are_gone_again_leave_their_hour_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionState, "behind", False)


@defect(test_plan_of_a_replay.test_compacting_users_makes_no_hour_stale)
def hours_that_have_read_a_compacted_version_of_the_users_are_never_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    def behind(self: reach.AsOf, look: Any, edge: Any) -> dict[str, str]:
        published = look.published(edge.below.dataset)
        required = self.required(look, edge)
        return {key: "" for key, version in required.items() if published[key].inputs.get(edge.above) != version}

    monkeypatch.setattr(reach.AsOf, "behind", behind)


@defect(test_plan_of_a_replay.test_only_the_first_user_delivery_reaches_earlier_hours)
def what_only_followed_is_taken_for_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = reach.AsOf.reached
    monkeypatch.setattr(
        reach.AsOf, "reached", lambda self, look, edge, wanted, asked: reached(self, look, edge, wanted, wanted)
    )


@defect(test_stale_hours.test_accepted_hours_wait_again_only_when_worse)
def what_a_person_has_accepted_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blogdata.planning.staleness._accepted", lambda *given: False)


@defect(test_expired.test_a_late_row_of_an_expired_hour_makes_nothing_stale_and_stays_where_it_arrived)
def a_partition_that_has_expired_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Staleness, "expired", lambda *given: {})


@defect(test_expired.test_an_hour_whose_table_keeps_longer_is_not_computed_from_what_is_left)
def an_hour_is_computed_from_what_is_left_of_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expired, "_readers", lambda *given: {})


@defect(test_laws.test_a_backfill_in_any_order_gives_one_table, "overwrite_partitions", order=(1, 0, 2))
def a_write_replaces_the_whole_table_instead_of_its_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    only = OpenCommit.replace
    monkeypatch.setattr(OpenCommit, "replace", lambda self, keys, by, info, **how: only(self, Whole.TABLE, by, info))


@defect(test_laws.test_a_vanished_row_is_refused, "overwrite_partitions")
def files_are_committed_whatever_their_audits_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "weigh", lambda spec, counted: replace(weigh(spec, counted), violations=()))


@defect(test_laws.test_of_two_writers_at_once_one_publishes, "merge", phase="written")
def rows_are_written_whatever_the_table_has_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenCommit, "_refuse_conflict", lambda *given: None)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def _arguments(chosen: Defect, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the arguments of the test that must fail, made before the defect is."""
    given = dict(chosen.given)
    if "lake" in given:
        given["lake"] = request.getfixturevalue(given["lake"])
    if chosen.writer:
        (given["writer"],) = (writer for writer in test_laws.EVERY if writer.name == chosen.writer)
        root = shutil.copytree(request.getfixturevalue("begun")(given["writer"]), tmp_path / "world")
        given["world"] = World(request.getfixturevalue("spark"), root, given["writer"])
    names = inspect.signature(chosen.noticed_by).parameters
    return {name: given[name] if name in given else request.getfixturevalue(name) for name in names}


CASES = [pytest.param(name, marks=pytest.mark.campaign if case.writer else []) for name, case in DEFECTS.items()]


@pytest.mark.parametrize("name", CASES)
def test_a_defect_is_noticed(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    chosen = DEFECTS[name]
    arguments = _arguments(chosen, request, tmp_path)
    # Not with the fixture, which some of these tests undo.
    with pytest.MonkeyPatch.context() as monkeypatch:
        chosen.seed(monkeypatch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            chosen.noticed_by(**arguments)
