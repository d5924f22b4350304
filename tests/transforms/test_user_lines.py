"""The users' deliveries: judging lines."""

from __future__ import annotations

from typing import Any

import pytest

from assets.transforms import users
from transforms.user_rows import deliver, in_utc, utc


def judged(spark: Any, *lines: str | bytes, file: str = "users/date=2026-01-01/users.json") -> list[Any]:
    return in_utc(users.judge(deliver(spark, *lines, file=file)).orderBy("source_offset").collect())


def reasons(spark: Any, *lines: str | bytes, file: str = "users/date=2026-01-01/users.json") -> list[list[str]]:
    return [row.reasons for row in judged(spark, *lines, file=file)]


def test_a_json_line_is_typed(spark: Any) -> None:
    line = (
        '{"id":"u1","login":"ann","email":"a@b.example","registered_datetime":"2026-01-01T02:00:00+02:00",'
        '"last_connection_datetime":null,"unannounced":{"x":1}}'
    )
    (row,) = judged(spark, line)
    assert row.reasons == []
    assert (row.id, row.login, row.email) == ("u1", "ann", "a@b.example")
    assert row.registered_datetime == utc(2026, 1, 1)
    assert row.last_connection_datetime is None
    assert bytes(row.raw) == line.encode()


def test_every_line_is_judged_with_all_its_reasons(spark: Any) -> None:
    expected: dict[str | bytes, list[str]] = {
        "": ["empty_line"],
        " \t": ["empty_line"],
        b"\xff{}": ["not_utf8"],
        '{"id":"a': ["truncated"],
        '{"id":"a"}{"id":"b"}': ["not_json"],
        '{"id":"a"},{"id":"b"}': ["not_json"],
        '[{"id":"a"}]': ["not_json"],
        "12": ["not_json"],
        "{........": ["not_json"],
        "{}": ["missing_field:id"],
        '{"id":null}': ["missing_field:id"],
        '{"id":" "}': ["missing_field:id"],
        '{"id":12}': ["wrong_type:id"],
        '{"id":{"a":1}}': ["wrong_type:id"],
        '{"id":"a","login":["x"],"registered_datetime":"yesterday","last_connection_datetime":5}': [
            "wrong_type:login",
            "invalid_time:registered_datetime",
            "invalid_time:last_connection_datetime",
        ],
        '{"id":"a","registered_datetime":"2026-01-01T00:00:00"}': ["invalid_time:registered_datetime"],
        '{"login":[1],"registered_datetime":{}}': [
            "missing_field:id",
            "wrong_type:login",
            "wrong_type:registered_datetime",
        ],
    }
    assert reasons(spark, *expected) == list(expected.values())


@pytest.mark.parametrize("file", ["users/date=2026-01-01/u.csv", "users/date=2026-01-01/u.CSV.gz"])
def test_csv_columns_are_found_by_their_header(spark: Any, file: str) -> None:
    lines = (
        "login;extra;id;email\r",
        'ann;;u1;"a;b ""c"""\r',
        ";;u2;\r",
    )
    header, first, second = judged(spark, *lines, file=file)
    assert (header.reasons, header.id, header.login) == (["header"], None, None)
    assert (first.reasons, first.id, first.login, first.email) == ([], "u1", "ann", 'a;b "c"')
    assert (second.reasons, second.id, second.login, second.email) == ([], "u2", None, None)


def test_broken_csv_lines_are_rejected_without_shifting_columns(spark: Any) -> None:
    lines = ("id;login;email", "u1;ann", "u1;ann;e;x", 'u1;"ann;e', "", ";ann;e", "u1;__end;e", ";" * 30_000)
    assert reasons(spark, *lines, file="u.csv") == [
        ["header"],
        ["not_csv"],
        ["not_csv"],
        ["not_csv"],
        ["empty_line"],
        ["missing_field:id"],
        [],
        ["not_csv"],
    ]


def test_csv_files_without_headers_are_rejected_whole(spark: Any) -> None:
    assert reasons(spark, "u1;ann;e", "u2;bob;f", file="u.csv") == [["header"], ["missing_field:id"]]
