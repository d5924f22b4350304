"""A sample shows the shape of a line without personal data."""

from __future__ import annotations

import pytest

from blogdata.report.rejected_rows import LONGEST, shape_of


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        (b'{"user_id": "Ann-7", "login": true}', '{"user_id": "Xxx-9", "xxxxx": true}'),
        (b'198.51.100.7 - ann [x] "GET /a?mail=ann@b.org"', '999.99.999.9 - xxx [x] "XXX /x?xxxx=xxx@x.xxx"'),
        (b'"user_id', '"xxxx_xx'),
        (b"\xff\x00\xe2\x80\xa8\xc3\xa9<b>", "????<x>"),
        (b"", ""),
        (b"nulls null", "xxxxx null"),
    ],
)
def test_letters_and_digits_are_masked(line: bytes, shape: str) -> None:
    assert shape_of(line, keys={"user_id"}) == shape


def test_a_long_line_is_cut() -> None:
    assert shape_of(b"a" * 10_000, keys=()) == "x" * LONGEST + "…"
    assert shape_of(b"a" * LONGEST, keys=()) == "x" * LONGEST


def test_a_value_that_looks_like_a_key_is_masked() -> None:
    assert shape_of(b'{"page":"user_id","user_id":1}', keys={"user_id"}) == '{"xxxx":"xxxx_xx","user_id":9}'
