"""An engineer finds the run of a row; a consumer sees neither technical nor personal columns."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.privacy import consumer_view, require_subjects, visible
from blogdata.contract.schema import NOBODY, Classification, Column, Partitioning
from blogdata.contract.writes import Feed, Serve
from blogdata.errors import ConfigurationError
from blogdata.ledger.events import EventLog
from blogdata.patterns.data_value.metadata_decorator import context_table
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext, Target
from quality.contracts import DECLARED, EVERY, SERVED

PAGES = Contract(
    dataset="silver.pages",
    description="Pages",
    owner="team:analytics",
    columns=(
        Column(name="day", type="STRING", nullable=False, description="Day"),
        Column(name="page", type="STRING", nullable=False, description="Page"),
        Column(name="login", type="STRING", classification=Classification.PERSONAL, description="Login"),
        Column(name="raw", type="BINARY", description="As received"),
        Column(name="source_file", type="STRING", description="File"),
        Column(name="occurrences", type="BIGINT", description="Rows it stands for"),
    ),
    partitioning=Partitioning(column="day", grain=Grain.DAY),
)
PERSONAL = frozenset({"ip", "login", "email", "user_id", "referral", "raw", "country"})
"""What a person is in the landed formats, and what is derived from an address."""
NOT_PERSONAL = {
    "gold.sessions_daily": {"referral"},
    "gold.visits_shared": {"country"},
}
"""A `referral` without query, fragment and user, or its host only; a `country` that several visitors share."""
FIRST = RunContext(run_id="run-1", job="hourly", code_version="c1", trigger="sensor:landed")
EVENT = {"id": "release-42", "source": "shop", "payload": "s3://shop/releases/42"}
SECOND = RunContext(
    run_id="run-2", job="repair", code_version="c2", trigger="event:shop/release-42", attempt=3, event=EVENT
)


def publish(spark: Any, lake: Lake, run: RunContext, *days: str) -> None:
    rows = [(day, f"/{run.run_id}", "ann", bytearray(b"{}"), "a.json", 1) for day in days]
    frame = spark.createDataFrame(rows, PAGES.ddl.replace(" NOT NULL", ""))
    commit = overwrite_partitions(frame, Target(lake=lake, contract=PAGES, run=run), days, Provenance())
    EventLog(lake).record(commit)


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two days published by the first run; the second run published one of them again."""
    lake = Lake(root=str(tmp_path_factory.mktemp("lake")))
    publish(spark, lake, FIRST, "2026-01-05", "2026-01-06")
    publish(spark, lake, SECOND, "2026-01-06")
    return lake


def test_a_row_joins_to_its_runs_event(spark: Any, lake: Lake) -> None:
    rows = context_table(spark, lake).where("current").orderBy("partition").collect()
    assert [(row["trigger"], row["event"]) for row in rows] == [
        ("sensor:landed", None),
        ("event:shop/release-42", json.dumps(EVENT, separators=(",", ":"))),
    ]


def test_the_context_table_keeps_what_was_replaced(spark: Any, lake: Lake) -> None:
    (replaced,) = context_table(spark, lake).where("not current").collect()
    assert (replaced["partition"], replaced["run_id"]) == ("2026-01-06", "run-1")


def test_a_personal_key_and_an_undeclared_column_are_hidden(spark: Any, lake: Lake) -> None:
    frame = lake.read(spark, "silver.pages").selectExpr("*", "'x' AS debug")
    assert consumer_view(frame, replace(PAGES, key=("login",))).columns == ["day", "page"]


def test_no_view_of_the_lake_shows_a_person_or_a_line() -> None:
    """Columns are classified by hand: a dataset that forgets a classification would publish personal data."""
    for dataset, contract in EVERY.items():
        personal = {each.name for each in contract.columns if each.personal}
        held = PERSONAL - NOT_PERSONAL.get(dataset, set())
        assert held & {each.name for each in contract.columns} <= personal, dataset
        assert not set(visible(contract)) & held, dataset
        # The counts in commits and in the ledger are not personal either.
        counted = {name for names in contract.breakdowns.values() for name in names}
        assert not counted & {each.name for each in contract.columns if each.of_a_person}, dataset
        # Fields of a nested column are hidden only by the column's own classification.
        nested = {name for name in PERSONAL for each in contract.columns if f"{name}: " in each.type}
        assert nested == set(), dataset


def test_the_bucket_of_a_person_is_shown_to_nobody_who_does_not_see_the_person() -> None:
    """Of a few dozen visitors, many are alone in their bucket, and it is the same at all of their visits."""
    bucketed = [contract for contract in EVERY.values() if contract.buckets is not None]
    assert bucketed
    for contract in bucketed:
        assert contract.buckets is not None
        assert contract.buckets.of not in visible(contract)
        assert contract.buckets.column not in visible(contract)


def test_every_contract_decides_whom_its_columns_identify() -> None:
    require_subjects(DECLARED.values())


def test_a_column_without_a_subject_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="whom these columns identify: login, raw\n") as refused:
        require_subjects([replace(PAGES, columns=tuple(_decided(each) for each in PAGES.columns))])
    assert "silver.pages" in str(refused.value)


def _decided(column: Column) -> Column:
    return column if column.name in ("login", "raw") else replace(column, subject=NOBODY)


def test_a_database_serves_no_personal_column() -> None:
    served = [contract for contract in SERVED.values() if isinstance(contract.write, Serve)]
    assert served
    for read in {read.dataset for contract in served for read in contract.reads}:
        assert not [each.name for each in EVERY[read].columns if each.personal or each.of_a_person], read


def test_a_partner_gets_only_what_a_consumer_sees() -> None:
    feeds = {name: contract for name, contract in SERVED.items() if isinstance(contract.write, Feed)}
    assert feeds
    for contract in feeds.values():
        (read,) = contract.reads
        source, write = EVERY[read.dataset], contract.write
        assert isinstance(write, Feed)
        assert set(write.payload) <= set(visible(source))
        unless = next(each for each in source.columns if each.name == write.unless)
        assert (unless.type, unless.nullable) == ("BOOLEAN", False), "an unknown answer would not count as a refusal"
