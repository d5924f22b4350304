"""Rules for every dataset, present and future: odd lines that bronze accepts, columns, and values of persons in them.

A row accepted by bronze but refused by a later contract would block the whole hour and all later steps. So odd lines
are processed down to gold, and every dataset has to publish them. Besides, a value of its own is planted in every field
of some lines: the columns that have one are those that contracts declare.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from assets.streams import STREAMS
from assets.transforms import visit_lines
from blogdata.erasure.search import search
from blogdata.patterns.data_flow import local_sequencer
from blogdata.patterns.observability import dataset_tracker, fine_grained_tracker
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource
from blogdata.patterns.quality import schema_migrator
from lineage import canaries, found_values, live, odd_lines
from lineage.canaries import Canaries
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.found_values import Found
from lineage.places import PLACES, Place
from quality.contracts import EVERY
from quality.contracts.columns import AD_IDENTIFIERS, IDENTIFIERS

pytestmark = pytest.mark.campaign
DAYS = (canaries.DAY, canaries.NEXT_DAY)
ODD = (
    "visit_id = char(9)",
    "user_id = char(0)",
    "page = ''",
    "contains(page, char(0))",
    "length(page) > 10000",
    "length(referral_host) > 10000",
    "greatest(length(visit_id), length(user_id)) >= 10000",
    "event_time = '2000-01-01T00:00:00Z'",
    "event_time = '2026-01-31T06:05:00Z'",
    "keep_private AND ad_id IS NULL AND browser IS NULL",
)
"""What must come through to silver, or the lines are not odd enough."""
LOGS = "/_delta_log/"
SKETCHES = "visitors"
TOKENS = {
    ("gold.visits_weekly", "visit_id"),
    *((name, "identity") for name in ("silver.identities", "silver.users", "silver.users_current")),
}
"""Pseudonyms that are tokens of the platform's own, and so not a value that landed."""
ENCRYPTED = {
    (name, column) for name, contract in EVERY.items() if contract.encrypted for column in contract.encrypted.columns
}
"""Columns that are stored encrypted."""


def _is_certain(place: Place) -> bool:
    """Return whether values can be found in a place by who looks for them: not in sketches, tokens and ciphertexts."""
    hidden = [name for name in place.columns if name == SKETCHES or (place.name, name) in TOKENS | ENCRYPTED]
    return place.always and (not place.columns or len(hidden) < len(place.columns))


CERTAIN = [place for place in PLACES if _is_certain(place)]


@dataclass(frozen=True, kw_only=True)
class World:
    """A deployment and what was planted in its input."""

    made: Deployment
    planted: Canaries


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> World:
    """Odd lines of every kind and planted values, with every dataset of the lake published, including streams.

    One hour is refused: among the last ones, which no other one waits for.
    """
    made = deploy("odd")
    users = odd_lines.drawn(odd_lines.users(), 200)
    devices, header = odd_lines.drawn(odd_lines.devices(), 100), b"type;full_name;version"
    for day, accounts, named in zip(DAYS, (users[:100], users[100:]), (devices[:60], devices[40:]), strict=True):
        for table, name, lines in (("users", "odd.json", accounts), ("devices", "odd.csv", [header, *named])):
            folder = made.landing / table / f"date={day}"
            folder.mkdir(parents=True)
            (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
            (folder / "_SUCCESS").touch()
    events = [*odd_lines.each_oddity(), *odd_lines.drawn(odd_lines.events(), 400)]
    displays = [*odd_lines.each_odd_display(), *odd_lines.drawn(odd_lines.displays(), 200)]
    for number, hour in enumerate(odd_lines.ARRIVALS):
        made.land(hour, events[number::2])
        made.land(hour, displays[number::2], name="ads.json", table="ads")
    made.land(odd_lines.ARRIVALS[0], odd_lines.drawn(odd_lines.requests(), 400), name="access.log")
    planted = canaries.plant(made)
    problems = made.run().problems
    assert [problem for problem in problems if "bounded_duplicates" in problem], problems
    others = [problem for problem in problems if "bounded_duplicates" not in problem]
    assert others == ["check silver/visits:contract failed: 1 violation(s); nothing was published"]
    # No week has all of its hours: the person asks for the one of nearly all lines.
    for dataset in ("gold.visits_snowflake_views", "gold.visits_shared"):
        assert made.replay(dataset, max(made.published("gold.visits_weekly"))).problems == []
    for stream in STREAMS.values():
        live.tick(made, stream)
    found_values.add_derived(made, planted)
    return World(made=made, planted=planted)


@pytest.fixture(scope="module")
def deployment(world: World) -> Deployment:
    return world.made


@pytest.fixture(scope="module")
def found(world: World) -> Found:
    return found_values.find(world.made.settings.home, world.planted)


def columns(dataset: str) -> set[str]:
    return {column.name for column in EVERY[dataset].columns}


def test_every_dataset_publishes_usable_rows_of_bronze(deployment: Deployment) -> None:
    assert [name for name in EVERY if not deployment.published(name)] == []
    assert deployment.problems() == []
    assert deployment.undeclared() == set()
    rows = deployment.rows("bronze.visits", "format", "filtered_by", "reasons")
    usable = Counter(form for form, filtered_by, reasons in rows if not reasons and not filtered_by)
    assert usable[visit_lines.JSON] > 300
    assert usable["combined"] > 30
    reasons = Counter(reason for *_, reasons in rows for reason in reasons)
    assert min(reasons[f"missing_field:{name}"] for name in IDENTIFIERS) > 10
    displays = deployment.rows("bronze.ads", "reasons")
    assert sum(not reasons for reasons in displays) > 100
    reasons = Counter(reason for each in displays for reason in each)
    assert min(reasons[f"missing_field:{name}"] for name in AD_IDENTIFIERS) > 5
    with deployment.session() as spark:
        visits = deployment.lake.read(spark, "silver.visits_enriched")
        came = visits.selectExpr(*[f"coalesce(bool_or({odd}), false) AS `{number}`" for number, odd in enumerate(ODD)])
        assert [odd for odd, there in zip(ODD, came.collect()[0], strict=True) if not there] == []


@pytest.mark.parametrize("dataset", EVERY)
def test_each_column_has_its_sources_or_says_why_not(deployment: Deployment, dataset: str) -> None:
    """Pattern: Fine-Grained Tracker."""
    newest = next(dataset_tracker.publications(deployment.lake, dataset)).commit
    landing = str(deployment.landing)
    read = fine_grained_tracker.read(deployment.lake, landing, newest)
    assert read is not None, "its lineage is lost"
    found = fine_grained_tracker.sources(deployment.lake, landing, newest)
    assert {name for name in columns(dataset) if not found[name]} == {
        column.name for column in EVERY[dataset].columns if column.sourceless
    }
    known = {ColumnSource(dataset=name, column=column) for name in EVERY for column in columns(name)}
    unknown = {source for source in read - known if not source.dataset.startswith("landing.")}
    assert {source.column.startswith("_") for source in unknown} <= {True}, "only columns of Delta itself"


def test_each_dataset_counts_as_a_reader_of_its_columns(deployment: Deployment) -> None:
    """Pattern: Schema Migrator."""
    asked = (deployment.lake, deployment.events, EVERY)

    def readers(dataset: str, column: str) -> dict[str, str]:
        found = schema_migrator.readers(*asked, dataset, column, landing=str(deployment.landing))
        return {each.name.removeprefix("silver."): each.how for each in found}

    by_sessions = {"sessions": "column lineage", "sessions_pending": "column lineage"}
    assert by_sessions.items() <= readers("silver.visits", "arrival_hour").items()
    assert readers("silver.visits", "ip")["places"] == "reads it outside Spark, as its contract says"
    assert readers("silver.devices", "valid_to")["visits_enriched"] == "column lineage"
    # A lost lineage would make a dataset a reader of any column of its inputs, even of a missing one.
    inputs = {read.dataset for contract in EVERY.values() for read in contract.reads if read.dataset in EVERY}
    assert {name: found for name in inputs if (found := readers(name, "nobody_reads_it"))} == {}


def test_a_program_reads_only_the_columns_that_its_contract_names(deployment: Deployment) -> None:
    named = {read.dataset: read.columns for read in EVERY["silver.places"].reads}["silver.visits"]
    assert named is not None
    with deployment.session() as spark:
        visits = deployment.lake.read(spark, "silver.visits").where("event_hour = 'none'").select(*named)
        assert local_sequencer.missing(visits, visits, key="ip") == []


def test_every_place_with_a_persons_value_is_declared(found: Found) -> None:
    assert [path for path in found.of_persons if not any(place.has(path) for place in PLACES)] == []


def test_the_search_of_an_erasure_finds_no_other_place_and_does_not_read_the_state_of_streams(found: Found) -> None:
    seen = search(found.home, [value.token for value in found.planted.every if value.identifies])
    assert {*seen.traces} >= set(found.of_persons)
    assert [path for path in seen.traces if not any(place.has(path) for place in PLACES)] == []
    (state,) = [place for place in PLACES if place.name == "state of streams"]
    assert seen.unsearched
    assert [path for path in seen.unsearched if not state.has(path)] == []


@pytest.mark.parametrize("place", CERTAIN, ids=lambda place: place.name)
def test_a_declared_place_has_persons_values(found: Found, place: Place) -> None:
    assert any(place.has(path) for path in found.of_persons)


def test_a_refused_batch_is_found(found: Found) -> None:
    """It is declared as possible only, as most deployments have none."""
    (refused,) = [place for place in PLACES if place.name == "refused batches"]
    assert any(refused.has(path) for path in found.of_persons)


def test_columns_with_identifiers_are_those_that_contracts_declare(found: Found) -> None:
    declared = {
        (name, column.name) for name, contract in EVERY.items() for column in contract.columns if column.singles_out
    }
    seen = {where for where, values in found.columns.items() if any(value.identifies for value in values)}
    assert seen - declared == set()
    assert {(name, column) for name, column in declared - seen if column != SKETCHES} == TOKENS | ENCRYPTED


def test_no_statistics_have_a_persons_value(found: Found) -> None:
    in_logs = {value for path, values in found.files.items() if LOGS in path for value in values}
    assert {value.field for value in in_logs if value.identifies} == set()
    assert "page" in {value.field for value in in_logs}, "the search sees statistics"


def test_no_footer_of_a_data_file_has_a_persons_value(found: Found) -> None:
    """Those of a refused batch do: its files are written without a contract."""
    assert {value.field for value in found.limits if value.identifies} == set()
    assert "page" in {value.field for value in found.limits}, "the search sees limits"
    # Nor has any footer the limits of such a column, of which other rows may have the least and the greatest value.
    declared = {
        (name, column.name) for name, contract in EVERY.items() for column in contract.columns if column.singles_out
    }
    assert found.limited & declared <= TOKENS
