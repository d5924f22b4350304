from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Account
from blogdata.contract.schema import WHOLE, Column, How, Subject, Whose
from blogdata.deliver import lake_views
from blogdata.deliver.lake_views import DUCKDB, SPARK
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.storage.vertical_partitioner import split, whole
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from quality.contracts import EVERY
from toy import CONTRACT, HOURS, target

FIRST, SECOND = HOURS
LINE = Column(
    name="line", type="STRING", description="As received", subject=Subject(whose=Whose.VISITOR, how=How.DIRECT)
)
BEFORE = replace(CONTRACT, columns=(*CONTRACT.columns[:2], LINE, *CONTRACT.columns[2:]))
LINES = "bronze.clicks"
AFTER = split(BEFORE, ("line",), of=LINES, key=("hour", "click"))
SPLIT = [contract for contract in EVERY.values() if contract.wide is not None]
Read = Callable[[], list[tuple[Any, ...]]]


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    """A lake with the lines of four clicks, and one that is no click."""
    lake = Lake(root=str(lake_root))
    clicks = [(FIRST, 0), (FIRST, 1), (SECOND, 2), (SECOND, 3), (FIRST, None)]
    hours, numbers = zip(*clicks, strict=True)
    lines = pa.table({"hour": hours, "click": pa.array(numbers, pa.int64()), "line": [f"of {n}" for n in numbers]})
    write_deltalake(lake.path(LINES), lines, partition_by=["hour"])
    return lake


@pytest.fixture
def view(spark: Any, lake: Lake) -> Read:
    """Reads the view: the platform's, and those that are written for other engines, which must show the same."""

    def statement(dialect: lake_views.Dialect) -> str:
        (sql,) = [sql for sql in lake_views.statements(lake, [AFTER], dialect) if f"{CONTRACT.dataset}{WHOLE}" in sql]
        return f"SELECT hour, click, line, page FROM ({sql.split(' AS ', 1)[1]}) ORDER BY click"

    def read() -> list[tuple[Any, ...]]:
        frame = whole(lake.read(spark, CONTRACT.dataset), lake.read(spark, LINES), AFTER)
        rows = [tuple(row) for row in frame.orderBy("click").select("hour", "click", "line", "page").collect()]
        assert [tuple(row) for row in spark.sql(statement(SPARK)).collect()] == rows
        if find_spec("duckdb"):
            assert import_module("duckdb").sql(statement(DUCKDB)).fetchall() == rows
        return rows

    return read


def test_the_view_shows_each_row_once_whatever_the_lines_are(spark: Any, lake: Lake, view: Read) -> None:
    numbered = [(hour, 2 * number + click) for number, hour in enumerate(HOURS) for click in (0, 1)]
    rows = [(hour, click, f"of {click}", 1, "/") for hour, click in numbered]
    frame = spark.createDataFrame(rows, "hour STRING, click BIGINT, line STRING, stands_for BIGINT, page STRING")
    accounts = {hour: Account(rows_in=2) for hour in HOURS}
    overwrite_partitions(frame, target(Path(lake.root), contract=AFTER), HOURS, Provenance(accounts=accounts))
    assert lake.read(spark, CONTRACT.dataset).columns == [column.name for column in CONTRACT.columns]
    assert view() == [(hour, click, f"of {click}", "/") for hour, click in numbered]

    # The lines of an hour have expired, and a line of the other one is no longer there.
    lines = DeltaTable(lake.path(LINES))
    lines.delete(f"hour = '{FIRST}'")
    lines.delete("click = 3")
    assert view() == [(FIRST, 0, None, "/"), (FIRST, 1, None, "/"), (SECOND, 2, "of 2", "/"), (SECOND, 3, None, "/")]


@pytest.mark.parametrize("contract", SPLIT, ids=lambda contract: contract.dataset)
def test_the_wide_columns_of_a_dataset_are_those_of_another(contract: Contract) -> None:
    wide = contract.wide
    assert wide is not None
    above = {column.name: column for column in EVERY[wide.of].columns}
    own = {column.name: column for column in contract.columns}
    assert [above[column.name] for column in wide.columns] == list(wide.columns)
    assert [above[name].type for name in wide.key] == [own[name].type for name in wide.key]
    inputs = {read.dataset for read in contract.reads}
    assert inputs & {wide.of, *(read.dataset for read in EVERY[wide.of].reads)}
    # A line that has expired leaves its events; events would not be found without their lines' hours.
    assert EVERY[wide.of].partition_column in (None, *wide.key)
