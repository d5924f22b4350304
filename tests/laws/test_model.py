"""Any sequence of steps leaves a lineage's tables as plain Python computes them, and readers never see less.

A machine lands lines (also late ones), runs, dies at a phase, retries, backfills, replays, compacts, vacuums, restores
and runs two runs concurrently. `make model STEPS=10000` runs it for long.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from laws.model import KINDS, Machine, deal

SHORT = 300
STEPS = int(os.environ.get("MODEL_STEPS", SHORT))
ENOUGH = 10 * SHORT
"""Steps in which each kind is drawn, also by chance, without which the machine shows nothing."""
AT_ONCE = 50
"""Steps a machine makes before it begins anew."""
PART = 10 * AT_ONCE
"""Steps after which a long run says what was made, and remembers it."""
_SETTINGS = settings(deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))


@pytest.fixture
def model(spark: Any) -> None:
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    Machine.spark = spark


@pytest.mark.campaign
@pytest.mark.usefixtures("model")
def test_every_kind_of_step_matches_the_python_model() -> None:
    Machine.made = Counter()

    @given(data=st.data(), begin=st.integers(0, 1000))
    @settings(_SETTINGS, max_examples=1, derandomize=True, phases=[Phase.generate])
    def dealt(data: st.DataObject, begin: int) -> None:
        machine = Machine()
        machine.begin(begin)
        deal(machine, data)
        machine.teardown()

    dealt()
    assert dict(Machine.made) == dict.fromkeys(KINDS, 1)


@pytest.mark.campaign
@pytest.mark.usefixtures("model")
@pytest.mark.timeout(0)
def test_any_order_of_steps_matches_the_python_model() -> None:
    if STEPS <= SHORT:
        made = _make(STEPS, derandomize=True)
        assert made.total() >= STEPS
    else:
        made = Counter()
        # Hypothesis ends some machines early, and draws few different rules for each.
        while made.total() < STEPS:
            made += _make(min(PART, STEPS - made.total()), derandomize=False)
    # A short run draws steps freely; the test above deals each kind.
    if STEPS >= ENOUGH:
        often = {"run", "crash", "retry", "late", "backfill", "replay", "compact", "vacuum", "restore"}
        assert set(made) >= often


def _make(steps: int, *, derandomize: bool) -> Counter[str]:
    Machine.made = Counter()
    chosen = settings(
        _SETTINGS,
        max_examples=-(-steps // AT_ONCE),
        # The initial step counts as well.
        stateful_step_count=min(steps, AT_ONCE) + 1,
        derandomize=derandomize,
        phases=(Phase.generate, Phase.shrink),
    )
    run_state_machine_as_test(Machine, settings=chosen)
    print(f"{Machine.made.total()} steps: {dict(sorted(Machine.made.items()))}")  # noqa: T201 - its steps
    return Machine.made
