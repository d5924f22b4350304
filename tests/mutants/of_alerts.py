"""Defects of alerts: lost, doubled or flooding messages, and shown secrets."""

from __future__ import annotations

from mutants.mutant import in_code

SENDING = "tests/alerts/test_sending.py"

ALERTS = (
    in_code(
        "a message counts as sent though its channel has not taken it",
        "platform/blogdata/alerts/sending.py",
        "        if failure is None or failure.taken:\n",
        "        if True:\n",
        f"{SENDING}::test_a_failing_channel_keeps_its_alerts_due",
    ),
    in_code(
        "a message is recorded before it is sent",
        "platform/blogdata/alerts/sending.py",
        "        failure = _given(route, route.channel, parcel.message, left)\n",
        "        record.taken(route.name, parcel.message, parcel.told, now)\n"
        "        failure = _given(route, route.channel, parcel.message, left)\n",
        "tests/alerts/test_crash.py::test_a_kill_before_recording_sends_again",
    ),
    in_code(
        "two processes send at once",
        "platform/blogdata/orchestration/alerting.py",
        "    with locked(deployment_alerts.lock(settings), seconds=lock_seconds):\n",
        "    if True:\n",
        "tests/alerts/test_crash.py::test_two_processes_at_once_send_once",
    ),
    in_code(
        "a flapping alert floods",
        "platform/blogdata/alerts/standing.py",
        "returns=told.returns + 1 if soon else 0",
        "returns=0",
        "tests/alerts/test_standing.py",
    ),
    in_code(
        "a secret stands in an error",
        "platform/blogdata/alerts/sending.py",
        "        return failure.without(route.secrets)\n",
        "        return failure\n",
        "tests/alerts/test_webhook.py::test_a_secret_address_is_never_shown",
    ),
    in_code(
        "a redirect is followed, and loses the message",
        "platform/blogdata/secrets/no_redirect.py",
        "build_opener(_NoRedirect, ",
        "build_opener(",
        "tests/alerts/test_webhook.py::test_a_refusal_is_final",
    ),
    in_code(
        "a text forges lines",
        "platform/blogdata/alerts/alert.py",
        "shown.message(getattr(self, name), longest)",
        "getattr(self, name)",
        "tests/alerts/test_mail.py::test_hostile_text_forges_no_header",
    ),
)
