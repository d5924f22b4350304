"""Rules for every dataset, present and future: odd lines that bronze accepts, columns, and values of persons in them.

A row accepted by bronze but refused by a later contract would block the whole hour and all later steps. So odd lines
are processed down to silver, and by `make laws` to gold, streams included; a value of its own is then planted in every
field of some lines: the columns that have one are those that contracts declare. The suite looks for values of persons
in three published hours.

Patterns: Dynamic Joiner, Local Aggregator, Distributed Aggregator.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from assets.bronze import visit_lines
from assets.streams import STREAMS
from blogdata.patterns.observability import dataset_tracker, fine_grained_tracker
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource
from blogdata.privacy.file_search import search
from lineage import canaries, expected, found_values, live, odd_lines
from lineage.canaries import Canaries, Canary
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.found_values import PLACES, Found, Place
from lineage.origins import three_hours
from quality.contracts import EVERY
from quality.contracts.columns import AD_IDENTIFIERS, IDENTIFIERS

THREE, EVERYTHING = "three hours", "everything"
FIELDS = ("visit_id", "user_id", "id", "login", "email", "ip")
SHORTEST = len("u00000000")
"""What is shorter may be in a file by chance."""
ENRICHED = "silver.visits_enriched"
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
DECLARED = {
    (name, column.name) for name, contract in EVERY.items() for column in contract.columns if column.singles_out
}
"""The columns that lead to one person."""
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


def is_certain(place: Place) -> bool:
    """Return whether values can be found in a place by who looks for them: not in sketches, tokens and ciphertexts."""
    hidden = [name for name in place.columns if name == SKETCHES or (place.name, name) in TOKENS | ENCRYPTED]
    return place.always and (not place.columns or len(hidden) < len(place.columns))


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> tuple[Deployment, Canaries]:
    """Odd lines and planted values of every kind, with every dataset published and streamed; a last hour is refused."""
    made = deploy("odd")
    users = odd_lines.drawn(odd_lines.users(), 200)
    devices, header = odd_lines.drawn(odd_lines.devices(), 100), b"type;full_name;version"
    for day, accounts, named in zip(DAYS, (users[:100], users[100:]), (devices[:60], devices[40:]), strict=True):
        made.deliver("users", day, accounts, "odd.json")
        made.deliver("devices", day, [header, *named], "odd.csv")
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
    return made, planted


@pytest.fixture(scope="module")
def deployment(world: tuple[Deployment, Canaries]) -> Deployment:
    return world[0]


@pytest.fixture(scope="module", params=[THREE, pytest.param(EVERYTHING, marks=pytest.mark.campaign)])
def found(request: pytest.FixtureRequest, deploy: Deploy) -> Found:
    if request.param == THREE:
        made = deploy.published("persons", three_hours)
        return found_values.find(made.settings.home, landed(made))
    made, planted = request.getfixturevalue("world")
    return found_values.find(made.settings.home, planted)


everywhere = pytest.mark.parametrize("found", [pytest.param(EVERYTHING, marks=pytest.mark.campaign)], indirect=True)


def landed(made: Deployment) -> Canaries:
    """Take from the landed lines what visitors and some users are known by, and the pages."""
    values = {("requests", "ip", "192.0.2.1")}
    for table, most in (("visits", None), ("ads", None), ("users", 60)):
        files = sorted((made.landing / table).rglob("*.json"))
        for row in [parsed(line) for file in files for line in file.read_bytes().splitlines()][:most]:
            known = {**row, **((row.get("context") or {}).get("user") or {})}
            values |= {(table, name, known[name]) for name in (*FIELDS, "page") if isinstance(known.get(name), str)}
    long = sorted(value for value in values if len(value[2]) >= SHORTEST)
    return Canaries([Canary(kind=kind, field=name, token=value) for kind, name, value in long])


def parsed(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def came_through(made: Deployment) -> list[str]:
    """List the oddities that are in no row of silver."""
    with made.session() as spark:
        visits = made.lake.read(spark, ENRICHED)
        came = visits.selectExpr(*[f"coalesce(bool_or({odd}), false) AS `{number}`" for number, odd in enumerate(ODD)])
        return [odd for odd, is_there in zip(ODD, came.collect()[0], strict=True) if not is_there]


@pytest.mark.campaign
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
    reasons = Counter(reason for of_line in displays for reason in of_line)
    assert min(reasons[f"missing_field:{name}"] for name in AD_IDENTIFIERS) > 5
    assert came_through(deployment) == []


def test_the_oddest_lines_that_bronze_accepts_come_through_to_silver(deploy: Deploy) -> None:
    """And each column that is computed of them has its sources."""
    made = deploy.published("oddest", three_hours)
    events = [*odd_lines.each_oddity(), *odd_lines.drawn(odd_lines.events(), 100)]
    for number, hour in enumerate(odd_lines.ARRIVALS):
        made.land(hour, events[number::2])
    made.land(odd_lines.ARRIVALS[0], odd_lines.drawn(odd_lines.requests(), 100), name="access.log")
    before = made.versions()
    assert made.run(for_=[ENRICHED]).problems == []
    assert made.problems() == []
    rows = made.rows("bronze.visits", "arrival_hour", "format", "reasons")
    usable = [form for hour, form, reasons in rows if hour in odd_lines.ARRIVALS and not reasons]
    assert usable.count(visit_lines.JSON) > 200
    assert came_through(made) == []
    computed = {name for name, version in made.versions().items() if version != before.get(name)} & EVERY.keys()
    assert computed >= {"bronze.visits", "silver.visits", "silver.places", ENRICHED}
    for dataset in computed:
        newest, _ = next(dataset_tracker.publications(made.lake, dataset))
        assert_sourced(dataset, fine_grained_tracker.sources(made.lake, str(made.landing), newest))


def test_every_display_of_an_ad_is_where_a_recount_in_plain_python_has_it(deploy: Deploy) -> None:
    made = deploy.published("ads", three_hours)
    for dataset, rows in expected.of(made.landing, *expected.AD_RULES).items():
        assert rows, dataset
        assert expected.found(made, dataset) == rows, dataset
    assert Counter(made.rows("silver.visits_with_ads", "side")).keys() == {"both", "event", "display"}


def assert_sourced(dataset: str, sources: Mapping[str, object]) -> None:
    without = [column.name for column in EVERY[dataset].columns if not sources[column.name]]
    assert without == [column.name for column in EVERY[dataset].columns if column.sourceless]


@pytest.mark.campaign
@pytest.mark.parametrize("dataset", EVERY)
def test_each_column_has_its_sources_or_says_why_not(deployment: Deployment, dataset: str) -> None:
    """Pattern: Fine-Grained Tracker."""
    commits = [commit for commit, _ in dataset_tracker.publications(deployment.lake, dataset)]
    newest = next((commit for commit in commits if commit.rows_out), commits[0])
    landing = str(deployment.landing)
    read = fine_grained_tracker.read(deployment.lake, landing, newest)
    assert read is not None, "its lineage is lost"
    assert_sourced(dataset, fine_grained_tracker.sources(deployment.lake, landing, newest))
    known = {
        ColumnSource(dataset=name, column=column.name)
        for name, contract in EVERY.items()
        for column in contract.columns
    }
    unknown = {source for source in read - known if not source.dataset.startswith("landing.")}
    assert {source.column.startswith("_") for source in unknown} <= {True}, "only columns of Delta itself"


def test_every_place_with_a_persons_value_is_declared(found: Found) -> None:
    assert [path for path in found.of_persons if not any(place.has(path) for place in PLACES)] == []
    assert {canary.field for canary in found.planted.every} >= {*FIELDS}


@everywhere
def test_the_search_of_an_erasure_finds_no_other_place_and_does_not_read_the_state_of_streams(found: Found) -> None:
    seen = search(found.home, [value.token for value in found.planted.every if value.identifies])
    assert {*seen.traces} >= set(found.of_persons)
    assert [path for path in seen.traces if not any(place.has(path) for place in PLACES)] == []
    (state,) = [place for place in PLACES if place.name == "state of streams"]
    assert seen.unsearched
    assert [path for path in seen.unsearched if not state.has(path)] == []


@everywhere
@pytest.mark.parametrize("place", [place for place in PLACES if is_certain(place)], ids=lambda place: place.name)
def test_a_declared_place_has_persons_values(found: Found, place: Place) -> None:
    assert any(place.has(path) for path in found.of_persons)


def with_identifiers(found: Found) -> set[tuple[str, str]]:
    return {where for where, values in found.columns.items() if any(value.identifies for value in values)}


def test_columns_with_identifiers_are_declared(found: Found) -> None:
    assert with_identifiers(found) - DECLARED == set()
    assert with_identifiers(found) >= {
        ("bronze.visits", "raw"),
        ("bronze.ads", "raw"),
        ("bronze.users", "email"),
        ("silver.visits", "ip"),
        ("silver.visit_conflicts", "visit_id"),
        ("silver.users", "user_id"),
        ("silver.ads", "visit_id"),
        ("silver.visits_enriched", "user_id"),
    }


@everywhere
def test_each_declared_column_has_identifiers(found: Found) -> None:
    left = DECLARED - with_identifiers(found)
    assert {(name, column) for name, column in left if column != SKETCHES} == TOKENS | ENCRYPTED


def test_no_statistics_and_no_footer_of_a_data_file_have_a_persons_value(found: Found) -> None:
    """Footers of a refused batch do: its files are written without a contract."""
    in_logs = {value for path, values in found.files.items() if LOGS in path for value in values}
    for seen in (in_logs, found.limits):
        assert {value.field for value in seen if value.identifies} == set()
        assert "page" in {value.field for value in seen}, "the search sees them"
    # Nor has any footer the limits of such a column, of which other rows may have the least and the greatest value.
    assert found.limited & DECLARED <= TOKENS
