"""The account of landed lines is kept for each file, not for their hour."""

from __future__ import annotations

from blogdata.table.audit import Counted, specify, weigh
from toy import CONTRACT, HOURS


def test_a_file_read_twice_in_place_of_another_is_refused_and_both_are_named() -> None:
    hour = HOURS[0]
    spec = specify(CONTRACT, (hour,), {}, {}, files={hour: {"a.json": (1, 9), "b.json": (1, 9)}})
    wrong = weigh(spec, Counted(figures={}, files={hour: {"b.json": (2, 18)}})).violations
    files = [violation.detail.split(",")[0] for violation in wrong if violation.rule == "account.file"]
    assert files == ["lines and bytes of a.json", "lines and bytes of b.json"]
