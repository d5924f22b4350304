"""The newest profile of a column compared with those of similar days."""

from __future__ import annotations

from random import Random

import pytest

from blogdata.patterns.quality.drift import QUANTILES, Profile, drifts
from blogdata.patterns.quality.offline_observer import Observation
from blogdata.report.distributions import distributions
from simulated_profiles import VISITS, profile, profiles


def observed(days: list[Profile]) -> list[Observation]:
    return [
        Observation(profile=day, drifts=drifts(day, days[:at], VISITS), orphans={}, run_id="run-1")
        for at, day in enumerate(days)
    ]


def test_the_newest_day_stands_beside_its_weekdays() -> None:
    days = profiles(Random(1), 4_000, range(36))
    days.append(profile(Random(2), 36, 4_000, browsers={"Opera": 0.9, "Chrome": 0.1}))
    browser, late = distributions(VISITS, observed(days))
    before = [days[36 - 7 * weeks].columns for weeks in range(1, 5)]
    counts = [one["browser"].counts for one in before]
    parts = {part.name: part for part in browser.parts}
    assert (browser.period, browser.drifted, browser.compared) == (days[36].period, True, 4)
    assert parts["Opera"].found == pytest.approx(days[36].columns["browser"].counts["Opera"] / days[36].rows)
    assert parts["Chrome"].usual == pytest.approx(
        sum(each["Chrome"] for each in counts) / sum(sum(each.values()) for each in counts)
    )
    assert max(max(part.width, part.usual_width) for part in browser.parts) == 1.0
    assert (late.is_share, late.drifted) == (False, False)
    median = QUANTILES.index(0.5)
    assert late.parts[1].found == days[36].columns["lateness"].quantiles[median]
    assert late.parts[1].usual == pytest.approx(sum(one["lateness"].quantiles[median] for one in before) / 4)


def test_without_a_past_nothing_is_usual() -> None:
    assert list(distributions(VISITS, [])) == []
    found = list(distributions(VISITS, observed(profiles(Random(1), 400, range(1)))))
    assert {part.usual for one in found for part in one.parts} == {None}
