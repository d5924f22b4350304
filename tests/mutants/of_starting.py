"""Defects in what starts runs and ends them: sensors, schedules, dead runs."""

from __future__ import annotations

from mutants.mutant import in_code

STALE = "tests/sensors/test_whatever_is_stale.py"
DEAD = "tests/orchestration/test_dead_runs.py"

STARTING = (
    in_code(
        "what has failed is asked for again at once",
        "sensors/request_throttle.py",
        "    if left <= 0:\n",
        "    if True:\n",
        f"{STALE}::test_what_fails_is_asked_for_again_after_pauses",
    ),
    in_code(
        "a run is asked for beside one that is under way",
        "sensors/stale.py",
        "if run_requests.is_under_way(context.instance):",
        "if False:",
        f"{STALE}::test_a_run_that_is_under_way_is_waited_for",
    ),
    in_code(
        "an hour that has changed back is taken for what it was",
        "platform/planning/reach.py",
        "{partition.fingerprint} over {_replaced(partition, published)}",
        "{partition.fingerprint}",
        f"{STALE}::test_an_hour_that_failed_and_changes_back_is_tried_again",
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
        "                    **dead_runs.own(),\n",
        "",
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
        "processes = [*_created_by(record), *_logged_processes(instance, run)]",
        "processes = [*_logged_processes(instance, run)]",
        f"{DEAD}::test_a_run_whose_process_was_killed_before_it_noted_itself_has_failed",
    ),
    in_code(
        "a run that was killed when all was published counts as under way for good",
        "blogdata/pipeline.py",
        "if dagster_home.left_behind(self._settings):",
        "if False:",
        "tests/lineage/test_commands.py::"
        "test_a_run_that_died_when_all_was_published_does_not_count_as_under_way_after_one_that_does_nothing",
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
        "tests/sensors/test_schedules.py::test_ticks_made_up_for_after_an_outage_are_one",
    ),
    in_code(
        "the running day decides what is final",
        "platform/planning/finality.py",
        "return min(newest, key_of(look.now() - grain.length, grain))",
        "return newest",
        "tests/sensors/test_schedules.py::test_what_the_clock_takes_as_final_is_final_for_everybody",
    ),
)
