"""Defects of branches in a flow, and of parallel and sequential runs."""

from __future__ import annotations

from mutants.mutant import in_code

CHOICE = "tests/data_flow/test_exclusive_choice.py"
SPLIT = "tests/data_flow/test_parallel_split.py"
SINGLE = "tests/data_flow/test_single_runner.py"
CONCURRENT = "tests/data_flow/test_concurrent_runner.py"
PASSES = "tests/orchestration/test_refresh_passes.py"
FILES = "platform/blogdata/orchestration/split_files.py"
LIBRARY = "platform/blogdata/patterns/data_flow"

BRANCHES = (
    in_code(
        "every day takes the newest branch",
        f"{LIBRARY}/exclusive_choice.py",
        "return begun[-1]",
        "return choice.phases[-1]",
        f"{CHOICE}::test_a_backfill_takes_the_branch_of_its_day",
    ),
    in_code(
        "each branch reads for itself",
        f"{LIBRARY}/parallel_split.py",
        "                self._kept[key] = rows",
        "                pass",
        f"{SPLIT}::test_one_read_feeds_both_writers",
    ),
    in_code(
        "a branch that has written an older version is done",
        f"{LIBRARY}/parallel_split.py",
        "if written is None or written.read != published",
        "if written is None",
        f"{SPLIT}::test_readers_keep_the_old_file_until_then",
    ),
    in_code(
        "files of different versions are compared",
        FILES,
        "if first is None or second is None or first.read != second.read:",
        "if first is None or second is None:",
        f"{SPLIT}::test_files_of_other_versions_are_not_compared",
    ),
    in_code(
        "rows that one branch has twice are equal",
        f"{LIBRARY}/parallel_split.py",
        'surplus["first"] += max(0, len(mine) - len(others))',
        'surplus["first"] += 0 if others else len(mine)',
        f"{SPLIT}::test_lost_doubled_and_changed_rows_are_counted",
    ),
    in_code(
        "the days after a failed one go on",
        f"{LIBRARY}/single_runner.py",
        "        if period > first and period not in failed",
        "        if False",
        f"{SINGLE}::test_a_new_day_waits_for_the_failed_one",
    ),
    in_code(
        "a run for new data executes the days of a backfill",
        "platform/blogdata/orchestration/turns.py",
        "    wanted = {WHOLE_TABLE} if task.in_order else set(keys)",
        "    wanted = set(keys)",
        f"{PASSES}::test_a_table_in_order_is_left_to_the_run_that_executes_it",
    ),
    in_code(
        "a backfill takes every slot",
        "platform/blogdata/deploy/dagster.yaml",
        "        limit: 2",
        "        limit: 4",
        f"{CONCURRENT}::test_a_backfill_of_110_days_leaves_slots_to_new_data",
    ),
)
