"""Lines of users, of changed users and of devices, in JSON and in CSV."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from assets.bronze.reference_lines import DeviceLines, UserLines
from blogdata.landing.lines import LineReader

DAY = "2026-01-01"
CHANGES = f"users/date={DAY}/users_table-1.jsonl"
UNTIMED = f"users/date={DAY}/users_table-untimed-1.jsonl"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


def rows_of(*lines: str | bytes, file: str, reader: LineReader) -> list[dict[str, Any]]:
    read, rows, offset = reader.of_file(file, DAY), [], 0
    for line in lines:
        raw = line if isinstance(line, bytes) else line.encode()
        rows.append(dict(zip(reader.schema.names, read(offset, raw), strict=True)))
        offset += len(raw) + 1
    return rows


def users(*lines: str | bytes, file: str = "users/date=2026-01-01/users.json") -> list[dict[str, Any]]:
    return rows_of(*lines, file=file, reader=UserLines())


def devices(*lines: str, file: str = "devices/date=2026-01-01/d.csv") -> list[dict[str, Any]]:
    return rows_of(*lines, file=file, reader=DeviceLines())


def reasons(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [list(row["reasons"]) for row in rows]


def test_a_json_line_is_typed() -> None:
    (row,) = users(
        '{"id":"u1","login":"ann","email":"a@b.example","registered_datetime":"2026-01-01T02:00:00+02:00",'
        '"last_connection_datetime":null,"unannounced":{"x":1}}'
    )
    absent = dict.fromkeys(("first_connection_datetime", "last_connection_datetime", "updated_at", "is_deleted"))
    known = {"id": "u1", "login": "ann", "email": "a@b.example", "registered_datetime": utc(2026, 1, 1)}
    assert row == {**known, **absent, "reasons": ()}


def test_every_line_has_all_its_reasons() -> None:
    expected = {
        '{"id":"a': "truncated",
        '{"id":"a"}{"id":"b"}': "not_json",
        "{}": "missing_field:id",
        '{"id":" "}': "missing_field:id",
        '{"id":12}': "wrong_type:id",
        '{"id":{"a":1}}': "wrong_type:id",
        '{"id":"a","login":["x"],"email":7,"registered_datetime":"yesterday","last_connection_datetime":5}': (
            "wrong_type:login wrong_type:email wrong_type:last_connection_datetime invalid_time:registered_datetime"
        ),
        '{"id":"a","registered_datetime":"2026-01-01T00:00:00"}': "invalid_time:registered_datetime",
        '{"login":[1],"registered_datetime":{}}': "missing_field:id wrong_type:login wrong_type:registered_datetime",
    }
    assert reasons(users(*expected)) == [told.split() for told in expected.values()]


def test_a_rejected_line_keeps_what_names_its_user() -> None:
    cut, wrong, typeless = users(
        '{"id":"a', '{"id":"a","login":"ann","registered_datetime":"?"}', '{"id":5,"login":"b"}'
    )
    assert (cut["id"], wrong["id"], wrong["login"], typeless["id"]) == (None, "a", "ann", None)


def test_a_change_was_made_on_the_day_it_landed_in() -> None:
    at = '{"id":"a","updated_at":"2026-01-01T23:59:59.999999Z","is_deleted":true}'
    lines = (
        at,
        at.replace(',"is_deleted":true', ""),
        at.replace("true", "null"),
        at.replace("01-01T", "01-02T"),
        at.replace("Z", "-01:00"),
        at.replace('"2026-01-01T23:59:59.999999Z"', "null"),
        at.replace("true", '"true"'),
        "{",
    )
    rows = users(*lines, file=CHANGES)
    assert [row["is_deleted"] for row in rows] == [True, False, False, True, True, True, False, False]
    impossible, missing = ["impossible_time:updated_at"], "missing_field:updated_at"
    rejected = [impossible, impossible, [missing], ["wrong_type:is_deleted"], ["not_json", missing]]
    assert reasons(rows) == [[], [], [], *rejected]
    assert [row["updated_at"] for row in rows[:4]] == [utc(2026, 1, 1, 23, 59, 59, 999_999)] * 3 + [None]
    (untimed,) = users(at, file=UNTIMED)
    assert (untimed["reasons"], untimed["updated_at"]) == (("impossible_time:updated_at",), None)


@pytest.mark.parametrize("file", ["users/date=2026-01-01/u.csv", "users/date=2026-01-01/u.CSV.gz"])
def test_csv_columns_are_found_by_their_header(file: str) -> None:
    header, first, second = users(
        "login;extra; id ;email;id;registered_datetime\r",
        'ann;;u1;"a;b ""c""";u9;2026-01-01T00:00Z\r',
        ";;u2;;;\r",
        file=file,
    )
    assert (header["reasons"], header["id"], header["login"]) == (("header",), None, None)
    assert (first["reasons"], first["id"], first["login"], first["email"]) == ((), "u1", "ann", 'a;b "c"')
    assert first["registered_datetime"] == utc(2026, 1, 1)
    assert (second["reasons"], second["id"], second["login"], second["email"]) == ((), "u2", None, None)


def test_broken_csv_lines_are_rejected_without_shifting_columns() -> None:
    lines = ("id;login;email", "u1;ann", "u1;ann;e;x", 'u1;"ann;e', 'u1;"ann"x;e', "", ";ann;e", ";" * 30_000)
    expected = "header not_csv not_csv not_csv not_csv empty_line missing_field:id not_csv"
    assert reasons(users(*lines, file="u.csv")) == [[reason] for reason in expected.split()]


def test_csv_files_without_readable_headers_are_rejected_whole() -> None:
    assert reasons(users("u1;ann;e", "u2;bob;f", file="u.csv")) == [["header"], ["missing_field:id"]]
    assert reasons(users('"id;login', "u2;bob", file="u.csv")) == [["header"], ["not_csv"]]
    assert reasons(users("", "u2;bob", "", file="u.csv")) == [["empty_line"], ["not_csv"], ["empty_line"]]


def test_a_device_has_a_type_and_a_version_which_may_be_numbers() -> None:
    _, phone, nameless, nothing = devices("type;full_name;version", 'phone;"A; b";9.0', "tv;;2", ";name;")
    assert tuple(phone.values()) == ("phone", "A; b", "9.0", ())
    assert tuple(nameless.values()) == ("tv", None, "2", ())
    assert nothing["reasons"] == ("missing_field:type", "missing_field:version")
    number, objects = devices(
        '{"type":12,"full_name":"A","version":9.0}', '{"type":{"a":1},"full_name":[],"version":"1"}', file="d.json"
    )
    assert tuple(number.values()) == ("12", "A", "9.0", ())
    assert objects["reasons"] == ("wrong_type:type", "wrong_type:full_name")
