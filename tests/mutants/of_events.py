"""Defects in receiving events from outside, and in starting their runs."""

from __future__ import annotations

from mutants.mutant import in_code

PATTERN = "platform/blogdata/patterns/ingestion/external_trigger.py"
TRIGGER = "tests/ingestion/test_external_trigger.py"
SENSOR = "tests/sensors/test_external_events.py"

EVENTS = (
    in_code(
        "another event hides behind a used id",
        "sensors/external_events.py",
        "if run.tags.get(_DIGEST) != event.digest:",
        "if False:",
        f"{SENSOR}::test_what_starts_no_run_is_moved_aside_with_its_reason",
    ),
    in_code(
        "a notification file is followed out of the landing zone",
        PATTERN,
        "entry.is_file(follow_symlinks=False)",
        "entry.is_file()",
        f"{TRIGGER}::test_hidden_and_linked_files_start_nothing",
    ),
    in_code(
        "an event is forgotten when its run was requested",
        "sensors/external_events.py",
        "            # Of two files with one key, too, Dagster starts one run.",
        "            file.unlink()",
        f"{SENSOR}::test_an_event_waits_until_its_run_was_launched",
    ),
    in_code(
        "the commit of a run does not name its event",
        "platform/blogdata/orchestration/computation.py",
        "    if event := _event(tags):",
        "    if (event := _event(tags)) and False:",
        f"{SENSOR}::test_commits_name_the_event_of_their_run",
    ),
    in_code(
        "the sender is answered before its event is kept",
        "platform/blogdata/orchestration/external_events.py",
        "        await asyncio.to_thread(keep, event, landing)",
        "        asyncio.get_running_loop().call_later(5, keep, event, landing)",
        f"{TRIGGER}::test_a_kill_before_the_answer_is_one_event",
    ),
)
