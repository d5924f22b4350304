"""(g) Late rows: the cost of integrating them when they touch 1, 10 or 100 of a thousand hours."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any

from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, say
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.publish.partitions import Grain, between, key_of, start_of
from blogdata.simulator import landing as simulator
from blogdata.simulator.files import flag_complete, write_whole
from blogdata.simulator.spec import SimulationSpec

DAYS = 42
ROWS_AN_HOUR = 10
TOUCHED = (1, 10, 100)
MONDAY = date(2026, 4, 20)
FIRST = MONDAY - timedelta(days=DAYS)
HOURS = between(f"{FIRST}T00", f"{MONDAY - timedelta(days=1)}T23", Grain.HOUR)


def measure(bench: Bench, size: Size) -> Result:
    """Measure with one late row in each touched hour; the size is ignored."""
    say(f"late rows for {', '.join(map(str, TOUCHED))} of {len(HOURS):,} hours, {size.rounds} rounds")
    world = World(bench)
    world.integrate(1, -1)
    seconds = interleaved([world.peer(count) for count in TOUCHED], size.rounds)
    whole = {name: median(times) for name, times in seconds.items()}
    each = {name: total / count for (name, total), count in zip(whole.items(), TOUCHED, strict=True)}
    one, *_, many = whole.values()
    target = Target(
        what=f"seconds for {TOUCHED[-1]} touched hours / for {TOUCHED[0]}",
        bound="at most",
        limit=3.0,
        found=round(many / one, 3),
    )
    facts: dict[str, Any] = {
        "seconds a touched hour": {name: round(value, 3) for name, value in each.items()},
        "hours of silver.visits that ran": dict(world.ran),
    }
    case = Case(name=f"{len(HOURS):,} hours", seconds=seconds, facts=facts)
    world.remove()
    return Result(letter="g", title="Late rows", cases=[case], targets=[target])


class World:
    """A deployment that has seen six weeks of hours."""

    def __init__(self, bench: Bench) -> None:
        spec = SimulationSpec(days=DAYS, visits_per_day=24 * ROWS_AN_HOUR, seed=11, start=FIRST)
        self._deployment: Deployment = bench.deployment("late")
        self._arrival = datetime.combine(MONDAY, datetime.min.time())
        self.ran: dict[str, int] = defaultdict(int)
        simulator.simulate(spec, self._deployment.settings.landing)
        outcome = self._deployment.run()
        say(f"  {len(HOURS):,} hours of history published in {outcome.seconds:.0f} s")

    def peer(self, touched: int) -> Peer:
        """Return the integration of this many hours, to be timed."""
        return Peer(
            name=f"{touched} of {len(HOURS):,} hours",
            prepare=lambda number: self._land(touched, number),
            run=lambda number: self._run(touched),
        )

    def integrate(self, touched: int, number: int) -> None:
        """Land and integrate the rows, untimed."""
        self._land(touched, number)
        self._run(touched)

    def remove(self) -> None:
        """Delete the deployment."""
        self._deployment.remove()

    def _land(self, touched: int, number: int) -> None:
        # Scattered, so that no two of them form a range: the worst case.
        hours = [HOURS[at * len(HOURS) // touched] for at in range(touched)]
        key = key_of(self._arrival, Grain.HOUR)
        self._arrival += timedelta(hours=1)
        folder = self._deployment.settings.landing / "visits" / f"date={key[:10]}" / f"hour={key[11:]}"
        lines = [json.dumps(_event(hour, f"late-{key}-{number}")).encode() + b"\n" for hour in hours]
        write_whole(folder / "visits-00000.json", [b"".join(lines)])
        flag_complete(folder)

    def _run(self, touched: int) -> None:
        before = self._versions()
        self._deployment.run()
        self.ran[f"{touched} of {len(HOURS):,} hours"] = self._versions() - before

    def _versions(self) -> int:
        return len(EventLog(Lake(root=str(self._deployment.settings.lake))).history("silver.visits"))


def _event(hour: str, visit: str) -> dict[str, Any]:
    moment = start_of(hour, Grain.HOUR) + timedelta(minutes=30)
    return {"visit_id": visit, "event_time": moment.isoformat(), "user_id": "u00000001", "page": "/late"}
