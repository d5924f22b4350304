"""Where values of persons are in three published hours, and what comes of the oddest lines that bronze accepts.

`make laws` plants a value of its own in every field, and looks at the columns of every dataset (test_every_dataset.py).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from assets.transforms.visit_lines import JSON
from blogdata.patterns.observability import dataset_tracker, fine_grained_tracker
from lineage import found_values, odd_lines
from lineage.canaries import Canaries, Canary
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.found_values import Found
from lineage.origins import three_hours
from lineage.places import PLACES
from lineage.test_every_dataset import LOGS, ODD
from quality.contracts import EVERY

FIELDS = ("visit_id", "user_id", "id", "login", "email", "ip")
ADDRESS = "192.0.2.1"
"""The client of the access log."""
SHORTEST = len("u00000000")
"""What is shorter may be in a file by chance."""
OF_USERS = 60
ENRICHED = "silver.visits_enriched"


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    return deploy.published("persons", three_hours)


@pytest.fixture(scope="module")
def found(deployment: Deployment) -> Found:
    return found_values.find(deployment.settings.home, landed(deployment))


def landed(made: Deployment) -> Canaries:
    """Take from the landed lines what visitors and some users are known by, and the pages."""
    values = {("requests", "ip", ADDRESS)}
    for table, most in (("visits", None), ("ads", None), ("users", OF_USERS)):
        files = sorted((made.landing / table).rglob("*.json"))
        lines = [line for file in files for line in file.read_bytes().splitlines()]
        for line in lines[:most]:
            row = parsed(line)
            context = row.get("context") or {}
            known = {**row, **(context.get("user") or {})}
            values |= {(table, name, known[name]) for name in (*FIELDS, "page") if isinstance(known.get(name), str)}
    return Canaries([Canary(kind=kind, field=name, token=value) for kind, name, value in sorted(values) if fits(value)])


def parsed(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def fits(value: str) -> bool:
    return len(value) >= SHORTEST


def test_every_place_with_a_value_of_a_person_is_declared(found: Found) -> None:
    assert [path for path in found.of_persons if not any(place.has(path) for place in PLACES)] == []
    assert {one.field for one in found.planted.every} >= {*FIELDS}


def test_columns_with_values_of_persons_are_declared(found: Found) -> None:
    declared = {
        (name, column.name) for name, contract in EVERY.items() for column in contract.columns if column.singles_out
    }
    seen = {where for where, values in found.columns.items() if any(value.identifies for value in values)}
    assert seen - declared == set()
    assert seen >= {
        ("bronze.visits", "raw"),
        ("bronze.ads", "raw"),
        ("bronze.users", "email"),
        ("silver.visits", "ip"),
        ("silver.visit_conflicts", "visit_id"),
        ("silver.users", "user_id"),
        ("silver.ads", "visit_id"),
        ("silver.visits_enriched", "user_id"),
    }


def test_no_statistics_and_no_footer_of_a_file_have_a_value_of_a_person(found: Found) -> None:
    in_logs = {value for path, values in found.files.items() if LOGS in path for value in values}
    for seen in (in_logs, found.limits):
        assert {value.field for value in seen if value.identifies} == set()
        assert "page" in {value.field for value in seen}, "the search sees them"


def test_the_oddest_lines_that_bronze_accepts_come_through_to_silver(deployment: Deployment) -> None:
    """A row that a later contract refused would block its hour; and each column that is computed has its sources."""
    events = [*odd_lines.each_oddity(), *odd_lines.drawn(odd_lines.events(), 100)]
    for number, hour in enumerate(odd_lines.ARRIVALS):
        deployment.land(hour, events[number::2])
    deployment.land(odd_lines.ARRIVALS[0], odd_lines.drawn(odd_lines.requests(), 100), name="access.log")
    before = deployment.versions()
    assert deployment.run(for_=[ENRICHED]).problems == []
    assert deployment.problems() == []
    rows = deployment.rows("bronze.visits", "arrival_hour", "format", "reasons")
    assert sum(hour in odd_lines.ARRIVALS and form == JSON and not reasons for hour, form, reasons in rows) > 200
    with deployment.session() as spark:
        visits = deployment.lake.read(spark, ENRICHED)
        odd = [f"coalesce(bool_or({each}), false) AS `{number}`" for number, each in enumerate(ODD)]
        came = visits.selectExpr(*odd).collect()[0]
        assert [each for each, there in zip(ODD, came, strict=True) if not there] == []

    computed = {name for name, version in deployment.versions().items() if version != before.get(name)} & EVERY.keys()
    assert computed >= {"bronze.visits", "silver.visits", "silver.places", ENRICHED}
    for dataset in computed:
        newest = next(dataset_tracker.publications(deployment.lake, dataset)).commit
        sources = fine_grained_tracker.sources(deployment.lake, str(deployment.landing), newest)
        columns = EVERY[dataset].columns
        assert [one.name for one in columns if not sources[one.name]] == [one.name for one in columns if one.sourceless]
