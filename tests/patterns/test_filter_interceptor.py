from collections import Counter

from blogdata.patterns.error_management.filter_interceptor import Filter, first_match

FILTERS: list[Filter[int]] = [
    ("small", lambda number: number < 100),
    ("odd", lambda number: number % 2 == 1),
    ("fives", lambda number: number % 5 == 0),
]


def test_each_filter_counts_its_first_matches() -> None:
    removed = Counter(first_match(FILTERS, number) for number in range(1000))
    assert removed == {"small": 100, "odd": 450, "fives": 90, None: 360}


def test_a_filter_in_front_takes_from_those_behind_it() -> None:
    removed = Counter(first_match(reversed(FILTERS), number) for number in range(1000))
    assert removed == {"small": 40, "odd": 400, "fives": 200, None: 360}
