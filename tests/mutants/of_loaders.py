"""Defects of loading tables."""

from __future__ import annotations

from mutants.mutant import in_code

FOLDER = "platform/blogdata/patterns/ingestion"
ROWS, FULL = f"{FOLDER}/table_rows.py", f"{FOLDER}/full_loader.py"
INCREMENTAL, PARTITIONS = f"{FOLDER}/incremental_loader.py", f"{FOLDER}/time_partitions.py"
OF_ROWS, OF_HOURS = "tests/ingestion/test_table_rows.py", "tests/ingestion/test_incremental_loader.py"
OF_PARTITIONS = "tests/ingestion/test_time_partitions.py"
ACCEPTED = "tests/orchestration/test_accepted_deliveries.py"
CUT_OFF = "tests/laws/test_moved_rows.py::test_cut_off_and_run_again_is_run_once"

LOADED = (
    in_code(
        "what COPY escapes stays escaped",
        ROWS,
        r'.replace(b"\\\\", b"\\")',
        "",
        f"{OF_ROWS}::test_full_loader_adapts_each_type_as_it_says",
    ),
    in_code(
        "times are in the zone of the server",
        ROWS,
        "connection.execute(\"SET LOCAL TIME ZONE 'UTC'\")",
        "pass",
        f"{OF_ROWS}::test_full_loader_adapts_each_type_as_it_says",
    ),
    in_code(
        "a mark of deleted rows may be a number",
        ROWS,
        '(column in flags and base != "bool")',
        "False",
        f"{OF_HOURS}::test_incremental_loader_says_what_a_table_lacks",
    ),
    in_code(
        "a load may write to its source",
        ROWS,
        "connection.read_only = True",
        "connection.read_only = False",
        f"{OF_ROWS}::test_full_loader_changes_nothing_of_the_source",
    ),
    in_code(
        "a table lands beside files of another producer",
        FULL,
        "        _require_alone(target)\n",
        "",
        f"{OF_ROWS}::test_full_loader_refuses_a_day_that_has_other_files",
    ),
    in_code(
        "a row between two windows is in both",
        INCREMENTAL,
        '"{0} >= {1} AND {0} < {2}"',
        '"{0} >= {1} AND {0} <= {2}"',
        f"{OF_HOURS}::test_incremental_loader_windows_are_half_open",
    ),
    in_code(
        "rows without a time are in no window and nowhere else",
        INCREMENTAL,
        '"{0} IS NULL OR {0} >= {1}"',
        '"{0} >= {1}"',
        f"{OF_HOURS}::test_incremental_loader_lands_rows_without_a_usable_time_apart_and_once",
    ),
    in_code(
        "rows of forgotten persons land again with each load",
        INCREMENTAL,
        "        if not kept:\n",
        "        if False:\n",
        f"{OF_HOURS}::test_incremental_loader_does_not_bring_back_rows_of_forgotten_persons",
    ),
    in_code(
        "an hour of another producer is complete when a loader says so",
        PARTITIONS,
        "if (folder / FLAG).exists() if others else left or not (folder / FLAG).exists():",
        "if left or not (folder / FLAG).exists():",
        f"{OF_PARTITIONS}::test_incremental_loader_by_time_partition_leaves_the_flag_to_another_producer",
    ),
    in_code(
        "a delivery whose load died before its flag is never complete",
        FULL,
        "        mark(folder)\n",
        "        if changed:\n            mark(folder)\n",
        f"{CUT_OFF}[devices_table-0]",
    ),
    in_code(
        "an hour whose load died before its flag is never complete",
        INCREMENTAL,
        "            if not (folder / FLAG).exists():\n                # After",
        "            if False:\n                # After",
        f"{CUT_OFF}[legacy_visits-2]",
    ),
    in_code(
        "a file of a load has the name of one that is there",
        INCREMENTAL,
        "int(_number(files[-1])) + 1 if files else 1",
        "len(files) + 1",
        f"{OF_HOURS}::test_incremental_loader_writes_over_no_file_when_earlier_ones_are_removed",
    ),
    in_code(
        "an accepted delivery of users is compared again when changes of its day land",
        "assets/bronze/reference.py",
        "if not rows or rows != accepted:",
        "if True:",
        f"{ACCEPTED}::test_full_loader_guards_compare_an_accepted_delivery_once",
    ),
    in_code(
        "changes take the place of a delivery of users unseen",
        "assets/bronze/reference.py",
        "and not files and not accepted:",
        "and not files:",
        f"{ACCEPTED}::test_full_loader_guards_miss_a_delivery_that_changes_have_replaced",
    ),
    in_code(
        "accepted dead letters of a delivery of users are asked about with each change",
        "assets/silver/reference.py",
        " and is_new:",
        ":",
        f"{ACCEPTED}::test_an_accepted_delivery_with_many_dead_letters_is_asked_about_once",
    ),
    in_code(
        "what a copy has left that died is never removed",
        "platform/blogdata/durable/switched_folder.py",
        "        if path.name in {CURRENT, *keep}:\n",
        """        if path.name in {CURRENT, *keep} or path.name.startswith("."):\n""",
        f"{CUT_OFF}[passthrough_replicator-2]",
    ),
)
