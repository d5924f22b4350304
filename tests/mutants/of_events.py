"""Defects in receiving events from outside, and in starting their runs."""

from __future__ import annotations

from mutants.mutant import in_code

INGESTION = "platform/blogdata/patterns/ingestion"
TRIGGER = "tests/ingestion/test_external_trigger.py"
SENSOR = "tests/sensors/test_external_events.py"

EVENTS = (
    in_code(
        "a missing token is nobody's empty one",
        f"{INGESTION}/external_trigger.py",
        "if token is None or len(matches) != 1:",
        "if token is None:",
        f"{TRIGGER}::test_an_event_without_a_valid_token_is_refused",
    ),
    in_code(
        "a sender speaks in the name of another",
        f"{INGESTION}/external_trigger.py",
        "sender != known.name if sender is not None else channel not in known.channels",
        "sender is None and channel not in known.channels",
        f"{TRIGGER}::test_a_request_beyond_the_declared_is_refused",
    ),
    in_code(
        "a replayed event starts a run however old it is",
        f"{INGESTION}/external_trigger.py",
        "elif at - event.time > self.oldest:",
        "elif False:",
        f"{TRIGGER}::test_a_request_beyond_the_declared_is_refused",
    ),
    in_code(
        "another event hides behind a used id",
        f"{INGESTION}/event_inbox.py",
        'if row["digest"] != entry.event.digest:',
        "if False:",
        f"{TRIGGER}::test_another_event_under_a_used_id_is_refused",
    ),
    in_code(
        "forged events displace what a person may still accept",
        f"{INGESTION}/event_inbox.py",
        """f"DELETE FROM refusals WHERE body {condition} AND number <=""",
        """f"DELETE FROM refusals WHERE number <=""",
        f"{TRIGGER}::test_forgeries_displace_no_other_refusal",
    ),
    in_code(
        "a notification file is followed out of the landing zone",
        f"{INGESTION}/notification_files.py",
        "about = entry.stat(follow_symlinks=False)",
        "about = entry.stat()",
        "tests/ingestion/test_notification_files.py::test_hidden_large_and_linked_files_start_nothing",
    ),
    in_code(
        "an event is forgotten when its run was requested",
        "sensors/external_events.py",
        "        entrance.inbox.requested(entry, next_try=now + pause(entry.tries + 1))",
        '        entrance.inbox.started(entry, "")',
        f"{SENSOR}::test_a_run_that_never_appears_is_requested_again",
    ),
    in_code(
        "a repeated request has another run key",
        f"{INGESTION}/event_inbox.py",
        """return self.event.key if self.run_number == 1 else f"{self.event.key}, {self.run_number}\"""",
        """return f"{self.event.key}, {self.tries}\"""",
        f"{SENSOR}::test_a_run_that_never_appears_is_requested_again",
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
        "            entry, known = entrance.take(notification)",
        """            import threading
            from types import SimpleNamespace

            threading.Timer(5, entrance.take, [notification]).start()
            entry, known = SimpleNamespace(event=SimpleNamespace(key=""), state="waiting"), False""",
        "tests/services/test_event_receiver.py::test_a_kill_before_the_answer_is_one_event",
    ),
)
