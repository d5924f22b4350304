"""Defects in starting and ending runs: sensors, schedules, dead runs."""

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
        f"{STALE}::test_failed_content_is_requested_again_after_pauses",
    ),
    in_code(
        "a run is asked for beside one that is under way",
        "sensors/refresh.py",
        "if request.tags[LANE] not in busy",
        "if True",
        f"{STALE}::test_sensor_waits_for_a_run_under_way",
    ),
    in_code(
        "a replay keeps each new hour waiting",
        "sensors/run_requests.py",
        "tags={LANE: lane[LANE]})",
        "tags={})",
        "tests/attacks/test_hourly_path.py::test_a_landed_hour_is_requested_beside_recomputation",
    ),
    in_code(
        "a run for what has landed waits for the partitions of a replay",
        "platform/blogdata/orchestration/refresh.py",
        "waits = self._request.scope == Scope.ALL.value",
        "waits = True",
        "tests/orchestration/test_refresh_passes.py::test_a_run_for_what_landed_waits_for_no_other",
    ),
    in_code(
        "what was computed since it was asked for again is computed twice",
        "platform/blogdata/orchestration/refresh.py",
        "return left - since.done(task.datasets, left, asked)",
        "return left",
        "tests/orchestration/test_refresh_passes.py::test_a_replay_is_computed_in_pieces",
    ),
    in_code(
        "an hour that has changed back is taken for what it was",
        "platform/blogdata/planning/reach.py",
        "{published_files.state_of(partition)} over {_replaced(partition, published)}",
        "{published_files.state_of(partition)}",
        f"{STALE}::test_a_failed_hour_changed_back_is_tried_again",
    ),
    in_code(
        "a run of another machine is ended",
        "platform/blogdata/orchestration/dead_runs.py",
        "if run.tags.get(HOST, here) != here:",
        "if False:",
        f"{DEAD}::test_another_machines_run_is_left_alone",
    ),
    in_code(
        "a run of the command line does not say whose it is",
        "platform/blogdata/cli/pipeline.py",
        "                    **dead_runs.own(),\n",
        "",
        "tests/lineage/test_commands.py::test_confirmed_plan_runs_and_commits_record_its_trigger",
    ),
    in_code(
        "a run that is done again is taken for its parent's process's",
        "platform/blogdata/orchestration/dead_runs.py",
        "if CREATOR in run.tags and run.parent_run_id is None:",
        "if CREATOR in run.tags:",
        f"{DEAD}::test_a_run_killed_before_it_began_has_failed",
    ),
    in_code(
        "a run that was killed before it began counts as under way for good",
        "platform/blogdata/orchestration/dead_runs.py",
        "processes = [*_created_by(record), *_logged_processes(instance, run)]",
        "processes = [*_logged_processes(instance, run)]",
        f"{DEAD}::test_a_run_killed_before_it_began_has_failed",
    ),
    in_code(
        "a run that was killed when all was published counts as under way for good",
        "platform/blogdata/cli/pipeline.py",
        "if dagster_home.left_behind(self._settings):",
        "if False:",
        "tests/lineage/test_commands.py::test_an_idle_run_settles_a_killed_run",
    ),
    in_code(
        "a run that has just succeeded is reported as failed",
        "platform/blogdata/orchestration/dead_runs.py",
        "if now is not None and now.status in UNDER_WAY:",
        "if now is not None:",
        f"{DEAD}::test_a_run_ending_meanwhile_keeps_its_status",
    ),
    in_code(
        "each tick that was missed asks for the same late days",
        "sensors/schedules.py",
        "overtaken_by = max(0, (_now() - due) // grain.length)",
        "overtaken_by = 0",
        "tests/sensors/test_schedules.py::test_ticks_missed_in_an_outage_become_one",
    ),
    in_code(
        "the running day decides what is final",
        "platform/blogdata/planning/finality.py",
        "return min(newest, key_of(clock.now() - grain.length, grain))",
        "return newest",
        "tests/sensors/test_schedules.py::test_planner_and_schedules_agree_on_final_days",
    ),
)
