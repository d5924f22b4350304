"""(d) One more hour: the cost of publishing it after 1, 10 or 100 days of hours."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from blogdata.simulator import landing as simulator
from blogdata.simulator.files import flag_complete, write_whole
from blogdata.simulator.spec import SimulationSpec

STANDARD_ROWS = 10_000
ROWS_AN_HOUR_BEFORE = 10
WARM_UPS = 2
RECORDED = Path(__file__).parent.parent / "tests" / "lineage" / "costs.json"
COUNTS = ("jobs", "tasks", "commits", "log_reads", "dagster_events")
"""Which of the recorded counts are shown: seconds follow from them."""
MONDAY = date(2026, 4, 20)
"""The new hours are the first of a week: whatever the history, day and week hold nothing else."""


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many events in the new hour, after this many days of history."""
    rows = size.visits or STANDARD_ROWS
    say(f"an hour of {rows:,} events after {', '.join(map(str, size.days))} days of history, {size.rounds} rounds")
    histories = [History(bench, count, rows) for count in size.days]
    seconds = interleaved([history.peer() for history in histories], size.rounds, warm_ups=WARM_UPS)
    for history in histories:
        history.remove()
    shortest, longest = histories[0], histories[-1]
    ratios = [ratio(seconds, history.name, shortest.name) for history in reversed(histories[1:])]
    target = Target(
        what=f"an hour after {longest.days} days / after {shortest.days}",
        bound="at most",
        limit=1.20,
        found=ratios[0].value if ratios else None,
    )
    facts = {
        "steps (seconds, median)": {history.name: history.steps() for history in histories},
        "counts of the hour with few rows that the suite records": counts(),
    }
    case = Case(name=f"{rows:,} events", seconds=seconds, ratios=ratios, facts=facts)
    return Result(letter="d", title="One more hour", cases=[case], targets=[target])


def counts() -> dict[str, dict[str, int]]:
    """Read what the suite records of an hour: the name of each count to how many there are, of all and by step."""
    steps: dict[str, dict[str, int]] = json.loads(RECORDED.read_text(encoding="utf-8"))["an hour"]
    found = {}
    for count in COUNTS:
        by_step = {step.replace("__", "."): counted[count] for step, counted in steps.items() if count in counted}
        found[count] = {"all": sum(by_step.values()), **by_step}
    return found


class History:
    """A deployment with some days of history, ten events an hour, published by one range run for each table."""

    def __init__(self, bench: Bench, days: int, rows: int) -> None:
        self.days = days
        self.name = f"after {days * 24} hours"
        self._rows = rows
        self._runs: list[dict[str, float]] = []
        spec = SimulationSpec(
            days=days, visits_per_day=24 * ROWS_AN_HOUR_BEFORE, seed=11, start=MONDAY - timedelta(days=days)
        )
        self._deployment: Deployment = bench.deployment(f"history-{days}")
        simulator.simulate(spec, self._deployment.settings.landing)
        outcome = self._deployment.run()
        say(f"  {days * 24} hours of history published in {outcome.seconds:.0f} s")

    def peer(self) -> Peer:
        """Return the run to be timed."""
        return Peer(name=self.name, prepare=self._land, run=self._run)

    def steps(self) -> dict[str, float]:
        """Return the median seconds of each dataset's step, and of everything outside of steps."""
        return {name: round(median(run[name] for run in self._runs), 3) for name in self._runs[0]}

    def remove(self) -> None:
        """Delete the deployment."""
        self._deployment.remove()

    def _land(self, number: int) -> None:
        # Warm-ups have numbers below zero.
        hour = number + WARM_UPS
        folder = self._deployment.settings.landing / "visits" / f"date={MONDAY}" / f"hour={hour:02d}"
        write_hour(folder, hour, self._rows)

    def _run(self, number: int) -> None:
        outcome = self._deployment.run()
        if number >= 0:
            steps = {step["dataset"]: float(step["seconds"]) for step in outcome.steps}
            self._runs.append({**steps, "beside the steps": outcome.seconds - sum(steps.values())})


def write_hour(folder: Path, hour: int, rows: int) -> None:
    """Land an hour of punctual events."""
    lines = [json.dumps(_event(hour, number, rows)).encode() + b"\n" for number in range(rows)]
    write_whole(folder / "visits-00000.json", [b"".join(lines)])
    flag_complete(folder)


def _event(hour: int, number: int, rows: int) -> dict[str, Any]:
    second = number * 3600 // rows
    return {
        "visit_id": f"visit-{hour}-{number // 4}",
        "event_time": f"{MONDAY}T{hour:02d}:{second // 60:02d}:{second % 60:02d}.{number % 1000:03d}Z",
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
