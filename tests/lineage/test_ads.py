"""Displayed ads are kept once, in their hour, joined with visits within half an hour and counted, as in plain Python.

Patterns: Dynamic Joiner, Local Aggregator, Distributed Aggregator.
"""

from __future__ import annotations

from collections import Counter

import pytest

from blogdata.simulator.spec import LINE_FAULTS, FaultRates, SimulationSpec
from lineage import expected
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.origins import three_hours

DATASETS = tuple(expected.AD_RULES)
RATES = {**dict.fromkeys(LINE_FAULTS, 0.04), "huge_line": 0.0, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=4000, seed=6, faults=FaultRates(**RATES), ads=True)
"""A day with every fault of a line."""


@pytest.fixture(params=["three hours", pytest.param("a day", marks=pytest.mark.campaign)])
def deployment(deploy: Deploy, request: pytest.FixtureRequest) -> Deployment:
    if request.param == "three hours":
        return deploy.published("ads", three_hours)
    made = deploy("day-of-ads")
    made.simulate(SPEC)
    assert made.run(for_=DATASETS).problems == []
    return made


def test_every_display_is_where_a_recount_in_plain_python_has_it(deployment: Deployment) -> None:
    for dataset, rows in expected.of(deployment.landing, *DATASETS).items():
        assert rows, dataset
        assert expected.found(deployment, dataset) == rows, dataset
    assert Counter(deployment.rows("silver.visits_with_ads", "side")).keys() == {"both", "event", "display"}
    assert deployment.problems() == []
