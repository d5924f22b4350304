from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.patterns.quality.expectations import Project, suite
from blogdata.patterns.quality.validation import Validation, write_page
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Audit, Classification, Column, Partitioning, RowRule

ACCOUNTS = Contract(
    dataset="silver.accounts",
    description="Accounts",
    owner="team:shop",
    columns=(
        Column(name="day", type="STRING", nullable=False, description="Day"),
        Column(name="id", type="BIGINT", nullable=False, description="Identifier"),
        Column(
            name="email",
            type="STRING",
            nullable=False,
            classification=Classification.PERSONAL,
            description="Address",
        ),
        Column(name="share", type="DOUBLE", description="Share of the day"),
        Column(name="tags", type="ARRAY<STRING>", description="Tags"),
        Column(
            name="home",
            type="STRUCT<town: STRING, at: STRUCT<north: DECIMAL(9, 6), east: DECIMAL(9, 6)>, since: DATE>",
            description="Where it is",
        ),
    ),
    key=("id",),
    partitioning=Partitioning(column="day", grain=Grain.DAY),
    rules=(
        RowRule(name="no_brace", expression="email NOT LIKE '{%'", description="An address is no object"),
        RowRule(
            name="looks_right",
            expression="email RLIKE '^[^@]{1,64}@'",
            description="An address has an at sign",
        ),
    ),
    audits=(Audit(name="adds_up", expression="abs(sum(share) - 1) < 0.001", description="The shares add up"),),
)
ROWS = ", ".join(f"{column.name} {column.type}" for column in ACCOUNTS.columns)
GOOD = [
    ("2026-01-05", 1, "a@x", 0.5, ["t"], None),
    ("2026-01-05", 2, "b@x", 0.5, None, None),
    ("2026-01-06", 1, "c@x", 1.0, None, None),
]
BAD = [
    ("2026-01-05", 1, "canary-one@x", 0.5, None, None),
    ("2026-01-05", 1, "{canary-two", 0.9, None, None),
    ("2026-01-06", 3, None, 1.0, None, None),
]


def rendered(frame: Any, contract: Contract, folder: Path) -> Validation:
    """Validate one dataset and write its page."""
    found = Project().validate(frame, contract)
    write_page(folder / "index.html", [found])
    return found


@pytest.fixture(scope="module")
def broken(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Validation, Path]:
    folder = tmp_path_factory.mktemp("docs") / "data_docs"
    return rendered(spark.createDataFrame(BAD, ROWS), ACCOUNTS, folder), folder


def test_every_promise_of_the_contract_has_one_expectation() -> None:
    rules = [expectation.meta["rule"] for expectation in suite(ACCOUNTS).expectations]
    assert rules == [
        "columns",
        "type.day",
        "not_null.day",
        "type.id",
        "not_null.id",
        "type.email",
        "not_null.email",
        "type.share",
        "type.tags",
        "type.home",
        "unique.id",
        "no_brace",
        "looks_right",
        "adds_up",
    ]


def test_rows_that_keep_every_promise_pass(spark: Any, tmp_path: Path) -> None:
    found = rendered(spark.createDataFrame(GOOD, ROWS), ACCOUNTS, tmp_path / "docs")
    assert found.passed, found
    assert (tmp_path / "docs" / "index.html").is_file()


def test_every_broken_promise_is_named_with_its_count(broken: tuple[Validation, Path]) -> None:
    found = {result.rule: result.found for result in broken[0].broken}
    assert found == {
        "not_null.email": 1,
        "unique.id": 2,
        "no_brace": 2,
        "looks_right": 2,
        "adds_up": 1,
    }
    assert broken[0].errors == []


def test_an_expectation_that_raised_is_an_error(spark: Any, tmp_path: Path) -> None:
    unknown = RowRule(name="unknown", expression="no_such_column > 1", description="A column that nobody has")
    contract = replace(ACCOUNTS, rules=(*ACCOUNTS.rules, unknown))
    found = rendered(spark.createDataFrame(GOOD, ROWS), contract, tmp_path / "docs")
    assert (found.passed, found.broken) == (False, [])
    (error,) = found.errors
    assert (error.rule, error.found) == ("unknown", None)
    assert error.error is not None
    assert error.error.startswith("[UNRESOLVED_COLUMN")
    assert "\n" not in error.error
    index = (tmp_path / "docs" / "index.html").read_text()
    assert "class='error'" in index
    assert "unknown: [UNRESOLVED_COLUMN" in index
    assert "None" not in index


def test_an_error_quotes_no_value_of_a_row(spark: Any, tmp_path: Path) -> None:
    raising = RowRule(name="number", expression="cast(email AS INT) > 0", description="An address is a number")
    found = rendered(spark.createDataFrame(BAD, ROWS), replace(ACCOUNTS, rules=(raising,)), tmp_path / "docs")
    (error,) = found.errors
    assert error.error is not None
    assert error.error.startswith("[CAST_INVALID_INPUT] The value '\N{HORIZONTAL ELLIPSIS}' of the type")
    assert not any("canary" in page.read_text() for page in (tmp_path / "docs").rglob("*.html"))


def test_pages_name_broken_rules_and_no_persons(broken: tuple[Validation, Path]) -> None:
    index = (broken[1] / "index.html").read_text()
    assert "looks_right (2)" in index
    assert "An address has an at sign" in index
    assert "None" not in index
    assert "canary" not in index
    assert "http" not in index
