import pytest

from blogdata.landing.full_loader import FullLoadRefused, guard


@pytest.mark.parametrize(
    ("last", "now", "said"),
    [
        (100, 0, "0 rows, the last load had 100"),
        (None, 0, "0 rows"),
        (100, 49, "49 rows, less than 50% of the last load's 100"),
        (100, 301, "301 rows, more than 3 times the last load's 100"),
    ],
)
def test_an_implausible_load_is_refused_with_both_counts(last: int | None, now: int, said: str) -> None:
    with pytest.raises(FullLoadRefused, match=said) as refused:
        guard(last, now, where="bronze.things")
    assert refused.value.where == "bronze.things"
    assert "--accept size" in refused.value.next_step


@pytest.mark.parametrize(("last", "now"), [(None, 1), (100, 50), (100, 300)])
def test_a_load_within_the_limits_is_accepted(last: int | None, now: int) -> None:
    guard(last, now, where="bronze.things")
