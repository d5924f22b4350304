import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.privacy import consumer_view, require_subjects, visible
from blogdata.contract.schema import NOBODY, Classification, Column
from blogdata.contract.writes import Feed, Serve
from blogdata.errors import ConfigurationError
from blogdata.ledger.events import EventLog
from blogdata.patterns.data_value.metadata_decorator import context_table
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext, Target
from quality.contracts import DECLARED, EVERY, SERVED
from toy import declared

LOGIN = Column(name="login", type="STRING", classification=Classification.PERSONAL, description="Login")
PAGES = declared("silver.pages", "day STRING NOT NULL, page STRING NOT NULL, raw BINARY, source_file STRING", by="day")
PAGES = replace(PAGES, columns=(*PAGES.columns[:2], LOGIN, *PAGES.columns[2:]))
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
    rows = [(day, f"/{run.run_id}", "ann", bytearray(b"{}"), "a.json") for day in days]
    frame = spark.createDataFrame(rows, PAGES.ddl.replace(" NOT NULL", ""))
    EventLog(lake).record(overwrite_partitions(frame, Target(lake=lake, contract=PAGES, run=run), days, Provenance()))


def test_a_row_joins_to_the_run_that_wrote_it_and_to_those_it_replaced(spark: Any, lake_root: Path) -> None:
    lake = Lake(root=str(lake_root))
    publish(spark, lake, FIRST, "2026-01-05", "2026-01-06")
    publish(spark, lake, SECOND, "2026-01-06")
    rows = context_table(spark, lake).orderBy("table_version", "partition").collect()
    assert [(row["partition"], row["run_id"], row["trigger"], row["current"]) for row in rows] == [
        ("2026-01-05", "run-1", "sensor:landed", True),
        ("2026-01-06", "run-1", "sensor:landed", False),
        ("2026-01-06", "run-2", "event:shop/release-42", True),
    ]
    assert rows[-1]["event"] == json.dumps(EVENT, separators=(",", ":"))
    frame = lake.read(spark, "silver.pages").selectExpr("*", "'x' AS debug")
    consumed = consumer_view(frame, replace(PAGES, key=("login",)))
    assert consumed.columns == ["day", "page"], "neither a personal key nor an undeclared column"


def test_no_view_of_the_lake_shows_a_person_or_a_line() -> None:
    """Columns are classified by hand: a dataset that forgets a classification would publish personal data."""
    for dataset, contract in EVERY.items():
        personal = {column.name for column in contract.columns if column.personal}
        held = PERSONAL - NOT_PERSONAL.get(dataset, set())
        assert held & {column.name for column in contract.columns} <= personal, dataset
        assert not set(visible(contract)) & held, dataset
        # The counts in commits and in the ledger are not personal either.
        counted = {name for names in contract.breakdowns.values() for name in names}
        assert not counted & {column.name for column in contract.columns if column.of_a_person}, dataset
        # Fields of a nested column are hidden only by the column's own classification.
        nested = {name for name in PERSONAL for column in contract.columns if f"{name}: " in column.type}
        assert nested == set(), dataset


def test_the_bucket_of_a_person_is_shown_to_nobody_who_does_not_see_the_person() -> None:
    """Of a few dozen visitors, many are alone in their bucket, and it is the same at all of their visits."""
    bucketed = [(visible(contract), it.of, it.column) for contract in EVERY.values() if (it := contract.buckets)]
    assert bucketed
    assert [(of, column) for shown, of, column in bucketed if of in shown or column in shown] == []


def test_every_contract_decides_whom_its_columns_identify() -> None:
    require_subjects(DECLARED.values())
    decided = [replace(it, subject=None if it.name in ("login", "raw") else NOBODY) for it in PAGES.columns]
    with pytest.raises(ConfigurationError, match="whom these columns identify: login, raw\n") as refused:
        require_subjects([replace(PAGES, columns=tuple(decided))])
    assert "silver.pages" in str(refused.value)


def test_what_leaves_the_lake_has_no_person() -> None:
    sinks = [(contract.write, EVERY[read.dataset]) for contract in SERVED.values() for read in contract.reads]
    assert {type(write) for write, _ in sinks} >= {Serve, Feed}
    for write, source in sinks:
        if isinstance(write, Feed):
            assert set(write.payload) <= set(visible(source))
            (unless,) = (column for column in source.columns if column.name == write.unless)
            assert (unless.type, unless.nullable) == ("BOOLEAN", False), "an unknown answer would be no refusal"
        elif isinstance(write, Serve):
            assert not [column.name for column in source.columns if column.personal or column.of_a_person], source
