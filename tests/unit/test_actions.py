"""Files below a table, described as its log needs them."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from blogdata.table.actions import files_below, footer, indexed_columns, is_removable, value_of

UTC = timezone.utc
EARLY, LATE = datetime(2026, 1, 5, 0, 0, 0, 999, UTC), datetime(2026, 1, 5, 1, 0, 0, 1, UTC)


def _footer(tmp_path: Path, columns: dict[str, pa.Array], groups: int = 1000) -> dict[str, Any]:
    pq.write_table(pa.table(columns), tmp_path / "one.parquet", row_group_size=groups)
    rows, statistics = footer(pq.read_metadata(tmp_path / "one.parquet"), list(columns))
    assert rows == len(next(iter(columns.values())))
    assert json.loads(json.dumps(statistics)) == statistics, "it is JSON"
    return statistics


def _bounds(tmp_path: Path, values: pa.Array, groups: int = 1000) -> tuple[Any, Any]:
    statistics = _footer(tmp_path, {"v": values}, groups)
    return statistics["minValues"].get("v"), statistics["maxValues"].get("v")


def test_a_footer_has_the_bounds_and_nulls_of_each_column_over_all_row_groups(tmp_path: Path) -> None:
    columns = {"n": pa.array([3, None, 1, 2]), "s": pa.array([None, None, None, "a"])}
    assert _footer(tmp_path, columns, groups=2) == {
        "numRecords": 4,
        "minValues": {"n": 1, "s": "a"},
        "maxValues": {"n": 3, "s": "a"},
        "nullCount": {"n": 1, "s": 3},
    }


def test_a_long_text_is_bounded_by_texts_that_are_not_within(tmp_path: Path) -> None:
    long = "z" * 40
    assert _bounds(tmp_path, pa.array([long])) == ("z" * 32, "z" * 32 + "\U0010ffff")
    greatest = "z" * 32 + "\U0010ffff" + "a"
    low, high = _bounds(tmp_path, pa.array([greatest]))
    assert low.encode() <= greatest.encode() <= high.encode()
    assert _bounds(tmp_path, pa.array(["é", "z"])) == ("z", "é")


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (pa.array([LATE, EARLY], pa.timestamp("us", "UTC")), "2026-01-05T00:00:00.000Z", "2026-01-05T01:00:00.001Z"),
        (pa.array([LATE.replace(tzinfo=None)]), "2026-01-05T01:00:00.000", "2026-01-05T01:00:00.001"),
        (pa.array([date(1500, 1, 1), date(2026, 1, 5)]), "1500-01-01", "2026-01-05"),
        (pa.array([Decimal("1.25"), Decimal("-2.50")], pa.decimal128(9, 2)), -2.5, 1.25),
        (pa.array([0.5, -1.5]), -1.5, 0.5),
        # No bounds that are certain, or none at all.
        (pa.array([float("inf"), 1.0]), None, None),
        (pa.array([True, False]), None, None),
        (pa.array([b"\xff"]), None, None),
        (pa.array([[1], [2]]), None, None),
        (pa.array([{"a": 1}]), None, None),
        (pa.array([Decimal(10**20), Decimal(1)], pa.decimal128(38, 0)), None, None),
        (pa.array([None, None], pa.int64()), None, None),
        (pa.array([datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)], pa.timestamp("us", "UTC")), None, None),
    ],
    ids=str,
)
def test_a_column_is_bounded_by_what_is_certain(tmp_path: Path, values: pa.Array, low: Any, high: Any) -> None:
    assert _bounds(tmp_path, values) == (low, high)


def test_one_row_group_without_bounds_leaves_a_column_without(tmp_path: Path) -> None:
    assert _bounds(tmp_path, pa.array([1.0, 2.0, float("nan"), float("nan")]), groups=2) == (None, None)


def test_a_folder_names_its_value_in_ascii() -> None:
    folders = {"2026-01-05T00": "2026-01-05T00", "a+b~2Fc~3A~25~C3~A9": "a b/c:%é", "~2A~7E": "*~"}
    assert {folder: value_of(folder) for folder in folders} == folders
    assert value_of("__HIVE_DEFAULT_PARTITION__") is None


def test_files_below_a_folder_have_rows_sizes_and_the_values_of_their_folders(tmp_path: Path) -> None:
    for folder, ids in (("day=~C3~BC", [1, 2]), ("day=b", [3]), ("day=c", [])):
        (tmp_path / "data" / folder).mkdir(parents=True)
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        pq.write_table(rows, tmp_path / "data" / folder / "part-0.parquet")
        (tmp_path / "data" / folder / ".part-0.parquet.crc").touch()
    (tmp_path / "data" / "_SUCCESS").touch()
    files = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    found = files_below(files, "data", partition=("day", None), indexed=["id"])
    assert [(file.path, file.rows, file.partition_values) for file in found] == [
        ("data/day=b/part-0.parquet", 1, {"day": "b"}),
        ("data/day=~C3~BC/part-0.parquet", 2, {"day": "ü"}),
    ]
    assert all(file.size == (tmp_path / file.path).stat().st_size and file.modified for file in found)
    named = files_below(files, "data", partition=("day", "b"), indexed=[])
    assert [file.partition_values for file in named] == [{"day": "b"}] * 2
    assert named[0].statistics == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}


@pytest.mark.parametrize(
    ("name", "value", "columns"),
    [
        ("dataSkippingNumIndexedCols", "32", ("a", "b")),
        ("dataSkippingNumIndexedCols", "1", ("a",)),
        ("dataSkippingNumIndexedCols", "-1", ("a", "b")),
        ("dataSkippingNumIndexedCols", "0", ()),
        ("dataSkippingStatsColumns", "day,b", ("b",)),
    ],
)
def test_a_table_names_the_columns_with_statistics(
    tmp_path: Path, name: str, value: str, columns: tuple[str, ...]
) -> None:
    schema = pa.schema([("day", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
    how: dict[str, str | None] = {f"delta.{name}": value}
    assert indexed_columns(DeltaTable.create(tmp_path, schema, partition_by=["day"], configuration=how)) == columns


def test_a_path_is_removable_if_it_is_encoded_as_delta_rs_encodes() -> None:
    removable = ("data/a/day=~C3~BC", "day=2026-01-05T00", "day=a%253Ab", "day=a%20b", "day=%C3%BC")
    paths = [f"{folder}/part-0.c000.zstd.parquet" for folder in (*removable, "day=ü", "day=a%3ab")]
    assert [is_removable(path) for path in paths] == [True] * 5 + [False] * 2
