"""Defects in what starts runs and ends them: sensors, schedules, dead runs."""

from __future__ import annotations

from mutants.mutant import in_code

LATE = "tests/sensors/test_late_data_sensor.py"
DEAD = "tests/orchestration/test_dead_runs.py"

STARTING = (
    in_code(
        "a failing hour takes its slot again at once",
        "sensors/asking.py",
        "    if left <= 0:\n",
        "    if True:\n",
        f"{LATE}::test_hours_whose_runs_failed_leave_their_slots_to_the_others_until_their_pause_is_over",
    ),
    in_code(
        "an hour that the command line is at is asked for",
        "sensors/late_data.py",
        " | under_way.claims(lake.lake, of).held().keys()",
        "",
        f"{LATE}::test_hours_that_the_command_line_is_at_are_left_alone_until_it_has_ended",
    ),
    in_code(
        "an hour that has changed back is taken for what it was",
        "sensors/landing.py",
        "{partition.fingerprint} over {replaced}",
        "{partition.fingerprint}",
        "tests/sensors/test_landing_sensors.py::test_an_hour_that_changes_and_changes_back_is_run_as_it_was_once_more",
    ),
    in_code(
        "a run of another machine is ended",
        "platform/orchestration/dead_runs.py",
        "if run.tags.get(HOST, here) != here:",
        "if False:",
        f"{DEAD}::test_a_run_of_another_machine_is_left_to_that_machine",
    ),
    in_code(
        "a run of the command line does not say whose it is",
        "blogdata/pipeline.py",
        "**dead_runs.own()}",
        "}",
        "tests/lineage/test_commands.py::test_a_plan_that_is_agreed_to_runs_and_its_commits_say_who_asked",
    ),
    in_code(
        "a run that is done again is taken for its parent's process's",
        "platform/orchestration/dead_runs.py",
        "if CREATOR in run.tags and run.parent_run_id is None:",
        "if CREATOR in run.tags:",
        f"{DEAD}::test_a_run_whose_process_was_killed_before_it_noted_itself_has_failed",
    ),
    in_code(
        "a run that was killed before it began counts as under way for good",
        "platform/orchestration/dead_runs.py",
        "processes = [*_created_by(record), *_noted(instance, run)]",
        "processes = [*_noted(instance, run)]",
        f"{DEAD}::test_a_run_whose_process_was_killed_before_it_noted_itself_has_failed",
    ),
    in_code(
        "a run that has just succeeded is reported as failed",
        "platform/orchestration/dead_runs.py",
        "if now is not None and now.status in UNDER_WAY:",
        "if now is not None:",
        f"{DEAD}::test_a_run_that_ended_while_it_was_looked_at_is_left_as_it_ended",
    ),
    in_code(
        "each tick that was missed asks for the same late days",
        "sensors/schedules.py",
        "overtaken_by = max(0, (_now() - due) // grain.length)",
        "overtaken_by = 0",
        "tests/sensors/test_schedules.py::test_ticks_that_are_made_up_for_after_an_outage_run_each_late_day_once",
    ),
    in_code(
        "the running day decides what is final",
        "platform/orchestration/finality.py",
        "return min(newest, key_of(_now() - grain.length, grain))",
        "return newest",
        "tests/sensors/test_schedules.py::test_what_the_schedule_takes_as_final_is_final_for_the_command_line",
    ),
)
