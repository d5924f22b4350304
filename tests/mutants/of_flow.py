"""Defects in the order of runs: fan-ins, and other teams' pipelines."""

from __future__ import annotations

from mutants.mutant import in_code

UNALIGNED = "tests/data_flow/test_unaligned_fan_in.py"
ISOLATED = "tests/data_flow/test_isolated_sequencer.py"
FAN_IN = "platform/blogdata/patterns/data_flow/unaligned_fan_in.py"
SEQUENCER = "platform/blogdata/patterns/data_flow/isolated_sequencer.py"

FLOW = (
    in_code(
        "a day is computed by itself when its first hour is there",
        "platform/blogdata/planning/staleness.py",
        "        return all(\n            part in self.look.published(read.dataset)",
        "        return any(\n            part in self.look.published(read.dataset)",
        "tests/sensors/test_whatever_is_stale.py::test_a_day_is_ready_after_its_last_hour",
    ),
    in_code(
        "a report waits for its missing parts after the deadline",
        "platform/blogdata/planning/staleness.py",
        "if at_deadline and _is_due(contract.runs.at, key, contract.grain):",
        "if False:",
        f"{UNALIGNED}::test_the_deadline_does_not_wait_for_missing_parts",
    ),
    in_code(
        "a report is made before the deadline from what is there",
        "platform/blogdata/planning/staleness.py",
        "return clock.now() >= start_of(key, grain) + grain.length + at.after",
        "return True",
        f"{UNALIGNED}::test_the_deadline_does_not_wait_for_missing_parts",
    ),
    in_code(
        "a source that delivers for the first time was missing before",
        FAN_IN,
        "(first is not None and first <= period)",
        "first is not None",
        f"{UNALIGNED}::test_a_source_counts_from_its_first_delivery",
    ),
    in_code(
        "late rows count as a delivered hour",
        FAN_IN,
        "there = (set(source.published) & set(source.delivered)) - set(source.held)",
        "there = set(source.published)",
        f"{UNALIGNED}::test_late_rows_are_no_delivery",
    ),
    in_code(
        "years between two logs are reported day by day",
        FAN_IN,
        "if start_of(other, grain) - start_of(one, grain) <= longest",
        "if longest",
        f"{UNALIGNED}::test_years_of_silence_are_no_missing_days",
    ),
    in_code(
        "a consumer is not asked whether it was called before",
        SEQUENCER,
        "consumer.run_for(what, period) or consumer.start(what, period)",
        "consumer.start(what, period)",
        f"{ISOLATED}::test_a_lost_memory_starts_nothing_twice",
    ),
    in_code(
        "a consumer is called for years before the first call",
        SEQUENCER,
        "return there[-1:]",
        "return there",
        f"{ISOLATED}::test_years_before_the_first_call_are_not_called_for",
    ),
    in_code(
        "a partial day is forecast from",
        "analytics/forecast.py",
        "return self.value if self.completeness >= 1 else None",
        "return self.value",
        "tests/analytics/test_forecast.py::test_a_partial_day_makes_no_forecast_smaller",
    ),
)
