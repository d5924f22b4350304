"""Any sequence of steps leaves a lineage's tables as plain Python computes them, and readers never see less.

A machine lands lines (also late ones), runs, dies at a phase, retries, backfills, replays, compacts, vacuums, restores
and runs two runs concurrently. `make model STEPS=10000` runs it for long.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from laws.model import Machine

SHORT = 300
STEPS = int(os.environ.get("MODEL_STEPS", SHORT))
ENOUGH = 10 * SHORT
"""Steps in which these kinds are drawn by chance, without which the machine shows nothing."""
AT_ONCE = 50
"""Steps a machine makes before it begins anew."""
PART = 10 * AT_ONCE
"""Steps after which a long run says what was made, and remembers it."""


@pytest.mark.campaign
@pytest.mark.timeout(0)
def test_any_order_of_steps_matches_the_python_model(spark: Any) -> None:
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    Machine.spark = spark
    if STEPS <= SHORT:
        made = _make(STEPS, derandomize=True)
        assert made.total() >= STEPS
    else:
        made = Counter()
        # Hypothesis ends some machines early, and draws few different rules for each.
        while made.total() < STEPS:
            made += _make(min(PART, STEPS - made.total()), derandomize=False)
    if STEPS >= ENOUGH:
        often = {"run", "crash", "retry", "late", "backfill", "replay", "compact", "vacuum", "restore"}
        assert set(made) >= often


def _make(steps: int, *, derandomize: bool) -> Counter[str]:
    Machine.made = Counter()
    chosen = settings(
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        max_examples=-(-steps // AT_ONCE),
        # The initial step counts as well.
        stateful_step_count=min(steps, AT_ONCE) + 1,
        derandomize=derandomize,
        phases=(Phase.generate, Phase.shrink),
    )
    run_state_machine_as_test(Machine, settings=chosen)
    print(f"{Machine.made.total()} steps: {dict(sorted(Machine.made.items()))}")  # noqa: T201 - its steps
    return Machine.made
