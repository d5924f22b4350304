"""Too large a share of dead letters is an error that names them."""

from __future__ import annotations

import pytest

from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import TooManyDeadLetters


def test_a_share_over_the_bound_is_an_error() -> None:
    fault = dead_letter.error_above_share(
        rejected_rows=11,
        rows=100,
        max_share=0.1,
        dataset="bronze.visits",
        part="2026-01-31T05",
        selection="size(reasons) > 0",
        then="run it again",
    )
    assert isinstance(fault, TooManyDeadLetters)
    assert "11 of 100 rows" in str(fault)
    assert "FROM bronze.visits WHERE size(reasons) > 0 GROUP BY reasons" in fault.next_step
    assert fault.next_step.endswith("then run it again")


@pytest.mark.parametrize(
    ("hours", "selection"),
    [
        ({"T03": (100, 100), "T04": (7, 500)}, "hour = 'T03'"),
        ({"T00": (9, 9), "T01": (40, 40), "T02": (40, 40), "T03": (40, 40)}, "hour BETWEEN 'T01' AND 'T03'"),
        ({"T00": (40, 40), "T01": (40, 40), "T02": (1, 900), "T03": (40, 40)}, "hour BETWEEN 'T00' AND 'T03'"),
    ],
)
def test_the_suggested_query_selects_the_judged_hours(hours: dict[str, tuple[int, int]], selection: str) -> None:
    fault = dead_letter.error_for_partition(
        "T03", hours, max_share=0.75, dataset="bronze.dead_letters", column="hour", then="go on"
    )
    assert fault is not None
    query = f"SELECT reasons, count(*) FROM bronze.dead_letters WHERE {selection} GROUP BY reasons"
    assert f'blogdata sql "{query}"; mend the producer' in fault.next_step
