"""Numbers and times are formatted for people."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blogdata.watch.report_page import change, duration, figure


@pytest.mark.parametrize(
    ("written", "given", "text"),
    [
        (duration, (None,), "–"),
        (duration, (9.99,), "10.0 s"),
        (duration, (12.4,), "12 s"),
        (duration, (260,), "4 m 20 s"),
        (duration, (11_100,), "3 h 5 m"),
        (duration, (180_000,), "2 d 2 h"),
        (change, (3, 2), "+50%"),
        (change, (100, 100), "±0%"),
        (change, (5, 0), ""),
        (change, (40_000, 1), "+3,999,900%"),
        (figure, (1234567, "count"), "1,234,567"),
        (figure, (0.259, "share"), "25.9%"),
        (figure, (0.0001, "share"), "<0.1%"),
        (figure, (3.9, "ratio"), "3.90"),
        (figure, (None, "share"), "–"),
    ],
)
def test_figures_are_written_in_their_unit(written: Callable[..., str], given: tuple[object, ...], text: str) -> None:
    assert written(*given) == text
