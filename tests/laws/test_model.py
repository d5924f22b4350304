"""Whatever happens to a lineage, in whatever order: its tables are what plain Python says, and nobody ever sees less.

A machine lands lines (late ones among them), runs, dies at a phase, tries again, fills back, replays, compacts,
vacuums, restores and lets two runs meet. `make model STEPS=10000` runs it for long.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from laws import tally
from laws.model import Machine

SHORT = 300
STEPS = int(os.environ.get("MODEL_STEPS", SHORT))
ENOUGH = 10 * SHORT
"""Steps in which every rule is drawn, also by chance."""
AT_ONCE = 50
"""Steps a machine makes before it begins anew."""
PART = 10 * AT_ONCE
"""Steps after which a long run says what was made, and remembers it."""


@pytest.fixture
def machine(spark: Any) -> type[Machine]:
    """The machine, on the tests' Spark."""
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    Machine.spark = spark
    return Machine


@pytest.mark.timeout(0)
def test_any_order_of_steps_matches_the_python_model(machine: type[Machine]) -> None:
    if STEPS <= SHORT:
        made = _make(machine, STEPS, derandomize=True)
        assert made.total() >= STEPS
    else:
        made = Counter()
        # Hypothesis ends some machines early, and draws few of the rules for each.
        while made.total() < STEPS:
            made += _make_and_keep(machine, min(PART, STEPS - made.total()))
    if STEPS == SHORT or STEPS >= ENOUGH:
        often = {"run", "crash", "retry", "late", "backfill", "replay", "compact", "vacuum", "restore"}
        assert set(made) >= often


def _make_and_keep(machine: type[Machine], steps: int) -> Counter[str]:
    try:
        made = _make(machine, steps, derandomize=False)
    except Exception:
        tally.keep(machine.made, counterexample=True)
        raise
    print(tally.keep(made, counterexample=False))  # noqa: T201 - what all of them did
    return made


def _make(machine: type[Machine], steps: int, *, derandomize: bool) -> Counter[str]:
    machine.made = Counter()
    chosen = settings(
        max_examples=-(-steps // AT_ONCE),
        # Its beginning counts as a step.
        stateful_step_count=min(steps, AT_ONCE) + 1,
        deadline=None,
        database=None,
        derandomize=derandomize,
        print_blob=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)
    print(f"{machine.made.total()} steps: {dict(sorted(machine.made.items()))}")  # noqa: T201 - what it did
    return machine.made
