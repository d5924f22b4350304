"""What the daemon of `blogdata ui` did: a line per run that has ended, and the report anew when one has published."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import dagster as dg

from blogdata.cli.outcome import Outcome
from blogdata.cli.output import console, say_warnings
from blogdata.cli.report_command import made_after_a_run
from blogdata.services.config import Settings

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_LOOK_SECONDS = 5.0
_BY = ("dagster/sensor_name", "dagster/schedule_name", "dagster/backfill")
COMMAND = "blogdata/trigger"
"""Tag of a run that a command executes: it says itself what it did, and writes the report."""


class EndedRuns:
    """Looks for runs that have ended since it was made."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self._settings = settings
        self._instance = instance
        self._since = datetime.now(timezone.utc)
        self._said: set[str] = set()
        self._looked = time.monotonic()

    def look(self) -> None:
        """Print what has ended since the last look, and write the report if something was published."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        found = self._instance.get_run_records(dg.RunsFilter(statuses=_ENDED, updated_after=self._since))
        new = [one for one in found if one.dagster_run.run_id not in self._said and COMMAND not in one.dagster_run.tags]
        for record in reversed(new):
            self._said.add(record.dagster_run.run_id)
            failed = record.dagster_run.status is not dg.DagsterRunStatus.SUCCESS
            console.print(line_of(record), style="red" if failed else None)
        if new:
            say_warnings(made_after_a_run(self._settings, Outcome()))


def line_of(record: dg.RunRecord) -> str:
    run = record.dagster_run
    ended = record.end_time or record.update_timestamp.timestamp()
    by = next((run.tags[tag] for tag in _BY if tag in run.tags), "hand")
    about = f" ({run.tags['blogdata/about']})" if "blogdata/about" in run.tags else ""
    took = f" in {ended - record.start_time:.0f} s" if record.start_time else ""
    how = {dg.DagsterRunStatus.SUCCESS: "done", dg.DagsterRunStatus.CANCELED: "canceled"}.get(run.status, "FAILED")
    at = datetime.fromtimestamp(ended, timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%SZ} {run.job_name} by {by}{about}: {how}{took}, run {run.run_id[:8]}"
