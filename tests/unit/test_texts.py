"""Numbers and times are formatted for people."""

from __future__ import annotations

import pytest

from blogdata.watch import report_page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (9.99, "10.0 s"),
        (12.4, "12 s"),
        (260, "4 m 20 s"),
        (11_100, "3 h 5 m"),
        (180_000, "2 d 2 h"),
    ],
)
def test_durations_have_two_units(seconds: float | None, text: str) -> None:
    assert report_page.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "before", "text"),
    [
        (3, 2, "+50%"),
        (100, 100, "±0%"),
        (5, 0, ""),
        (40_000, 1, "+3,999,900%"),
    ],
)
def test_changes_are_in_percent(value: float | None, before: float | None, text: str) -> None:
    assert report_page.change(value, before) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1234567, "count", "1,234,567"),
        (0.259, "share", "25.9%"),
        (0.0001, "share", "<0.1%"),
        (3.9, "ratio", "3.90"),
        (None, "share", "–"),
    ],
)
def test_figures_are_written_in_their_unit(value: float | None, unit: str, text: str) -> None:
    assert report_page.figure(value, unit) == text
