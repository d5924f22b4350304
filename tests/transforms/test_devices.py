"""The devices' delivery: judging lines, and one row per device."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from assets.transforms import devices
from quality.contracts import CONTRACTS

LINES = "raw BINARY, source_offset BIGINT, source_file STRING, load_date STRING"


def judge(spark: Any, *lines: str, file: str = "devices/date=2026-01-01/d.csv") -> Any:
    rows, offset = [], 0
    for line in lines:
        rows.append((line.encode(), offset, file, "2026-01-01"))
        offset += len(line.encode()) + 1
    return devices.judge(spark.createDataFrame(rows, LINES))


def judged(spark: Any, *lines: str, file: str = "devices/date=2026-01-01/d.csv") -> list[Any]:
    return judge(spark, *lines, file=file).orderBy("source_offset").collect()


def test_both_results_have_the_columns_of_their_contracts(spark: Any) -> None:
    rows = judge(spark, "type;full_name;version")
    for frame, dataset in ((rows, "bronze.devices"), (devices.unique(rows), "silver.devices")):
        found = [(field.name, field.dataType.simpleString().upper()) for field in frame.schema.fields]
        assert found == [(column.name, column.type) for column in CONTRACTS[dataset].columns]


def test_csv_lines_are_typed_and_the_header_is_a_row(spark: Any) -> None:
    header, phone, nameless = judged(spark, "type;full_name;version", 'phone;"A; b";9.0', "tv;;2")
    assert header.reasons == ["header"]
    assert (phone.reasons, phone.type, phone.full_name, phone.version) == ([], "phone", "A; b", "9.0")
    assert (nameless.reasons, nameless.full_name) == ([], None)


def test_a_device_without_type_and_version_says_both(spark: Any) -> None:
    _, row = judged(spark, "type;full_name;version", ";name;")
    assert row.reasons == ["missing_field:type", "missing_field:version"]


def test_a_version_given_as_a_number_keeps_its_digits(spark: Any) -> None:
    (row,) = judged(spark, '{"type":"phone","full_name":"P","version":9.0}', file="d.json")
    assert (row.reasons, row.version) == ([], "9.0")


def test_an_object_in_place_of_a_value_is_a_wrong_type(spark: Any) -> None:
    (row,) = judged(spark, '{"type":{"a":1},"full_name":[],"version":"1"}', file="d.json")
    assert row.reasons == ["wrong_type:type", "wrong_type:full_name"]


def test_a_device_delivered_twice_is_one_row_that_stands_for_both(spark: Any) -> None:
    lines = ("type;full_name;version", "tv;first;1", "tv;second;1", "tv;other;2", ";x;1")
    valid = judge(spark, *lines).where(F.size("reasons") == 0)
    found = {(row.device_type, row.device_version): row for row in devices.unique(valid).collect()}
    assert {key: (row.full_name, row.occurrences) for key, row in found.items()} == {
        ("tv", "1"): ("first", 2),
        ("tv", "2"): ("other", 1),
    }
