"""One more late hour: the cost of publishing an hour, and late rows of the hours before, after 1, 10 and 100 days.

The history has ten events an hour. The new hours begin a week, so their day and week have the same contents for every
history; one event in twenty is late, by up to six hours. Only the metadata that the platform reads differs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from statistics import median
from typing import Any

from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, Size, interleaved, ratio, say

STANDARD_ROWS = 10_000
DAYS = (1, 10, 100)
ROWS_AN_HOUR_BEFORE = 10
WARM_UPS = 2
LATE_EVERY, LATEST = 20, 6
MONDAY = datetime(2026, 4, 20, tzinfo=timezone.utc)


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure with this many events in the new hour."""
    rows = size.visits or STANDARD_ROWS
    say(f"an hour of {rows:,} events after {', '.join(map(str, DAYS))} days of history, {size.rounds} rounds")
    histories = [History(bench, count, rows) for count in DAYS]
    seconds = interleaved([history.peer() for history in histories], size.rounds, warm_ups=WARM_UPS)
    facts = {
        **ratio(seconds, histories[-1].name, histories[0].name),
        "steps (seconds, median)": {history.name: history.steps() for history in histories},
    }
    for history in histories:
        history.remove()
    return [Case(name=f"{rows:,} events", seconds=seconds, facts=facts)]


class History:
    """A deployment with some days of history, ten events an hour, published by one range run for each table."""

    def __init__(self, bench: Bench, days: int, rows: int) -> None:
        self.name = f"after {days * 24} hours"
        self._rows = rows
        self._runs: list[dict[str, float]] = []
        self._deployment: Deployment = bench.deployment(f"history-{days}")
        self._deployment.simulate(days, 24 * ROWS_AN_HOUR_BEFORE, 11, MONDAY - timedelta(days=days))
        outcome = self._deployment.run()
        say(f"  {days * 24} hours of history published in {outcome.seconds:.0f} s")

    def peer(self) -> Peer:
        """Return the run to be timed."""
        return Peer(name=self.name, prepare=self._land, run=self._run)

    def steps(self) -> dict[str, float]:
        """Return the median seconds of each dataset's step, and of everything outside of steps."""
        return {name: round(median(run.get(name, 0.0) for run in self._runs), 3) for name in self._runs[0]}

    def remove(self) -> None:
        """Delete the deployment."""
        self._deployment.remove()

    def _land(self, number: int) -> None:
        # Warm-ups have numbers below zero.
        hour = number + WARM_UPS
        folder = self._deployment.settings.landing / "visits" / f"date={MONDAY.date()}" / f"hour={hour:02d}"
        folder.mkdir(parents=True)
        lines = [json.dumps(_event(hour, event, self._rows)).encode() + b"\n" for event in range(self._rows)]
        (folder / "visits-00000.json").write_bytes(b"".join(lines))
        (folder / "_SUCCESS").touch()

    def _run(self, number: int) -> None:
        outcome = self._deployment.run()
        if number >= 0:
            steps = {step["dataset"]: float(step["seconds"]) for step in outcome.steps}
            self._runs.append({**steps, "beside the steps": outcome.seconds - sum(steps.values())})


def _event(hour: int, number: int, rows: int) -> dict[str, Any]:
    late = 0 if number % LATE_EVERY else number % LATEST + 1
    at = MONDAY + timedelta(hours=hour - late, seconds=number * 3600 // rows, milliseconds=number % 1000)
    return {
        "visit_id": f"visit-{hour}-{number // 4}",
        "event_time": at.isoformat(timespec="milliseconds"),
        "user_id": f"u{number % 500:08d}",
        "keep_private": False,
        "page": f"/posts/{number % 97}",
        "context": {
            "referral": "https://search.example.org/",
            "ad_id": None,
            "user": {"ip": f"10.0.{number % 250}.7", "login": None},
            "technical": {"browser": "Firefox", "device_type": "pixel", "device_version": str(number % 5 + 5)},
        },
    }
