"""Deployments with which several test files begin: each is published once in the whole suite, and then copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from blogdata.files import locked
from blogdata.operate import config
from blogdata.simulator.spec import FaultRates, SimulationSpec
from lineage.deployment import Deployment, event

Fill = Callable[[Deployment], None]
"""Lands the data of a deployment and publishes it."""
THREE_HOURS = ("2026-01-05T00", "2026-01-05T01", "2026-01-05T02")
_PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, kw_only=True)
class Origins:
    """The published deployments of a suite."""

    folder: Path
    url: str

    def copy(self, fill: Fill, home: Path, *before: Fill) -> Deployment:
        """Copy a published deployment."""
        origin = self.folder / fill.__name__
        with locked(origin.with_suffix(".lock"), seconds=_PATIENCE_SECONDS):
            if not origin.is_dir():
                unfinished = origin.with_suffix(".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                *earlier, last = before or (None,)
                made = self.copy(last, unfinished, *earlier) if last else Deployment.create(unfinished, self.url)
                try:
                    fill(made)
                finally:
                    made.close()
                unfinished.rename(origin)
        shutil.copytree(origin, home)
        return Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))


def three_hours(made: Deployment) -> None:
    """Publish three hours with dead letters, duplicates, conflicts and late events; the last hour has all of them."""
    faults = FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, null_field=0.1, late=0.2)
    with TemporaryDirectory() as folder:
        world = Deployment.create(Path(folder) / "world")
        world.simulate(SimulationSpec(days=1, visits_per_day=1000, seed=5, faults=faults, ads=True))
        made.copy_hours(world, THREE_HOURS)
    _, middle, last = THREE_HOURS
    # Two late ones and two in conflict, of an unknown device; one of an ad; and a line that is no event.
    late, conflict = [event(at, "/late") for at in ("00:10", "00:20")], event("02:30", "/conflict")
    ad = {"ad_id": "a", "technical": {"browser": "Firefox", "device_type": "PC"}}
    clicked = event("02:20", "/clicked", visit_id="v", context=ad)
    more = [*late, conflict, conflict.replace(b"Firefox", b"Lynx"), clicked, b"{"]
    made.land(last, more, name="visits-more.json")
    # Not in the last hour, which tests compute again: logs take the longest plans.
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
    logged = [
        f'192.0.2.1 - - [05/Jan/2026:01:0{number}:00 +0000] "GET {path} HTTP/1.1" {status} 1 "-" "{agent}"'.encode()
        for number, (path, status) in enumerate((("/a", 200), ("/b", 200), ("/gone", 404), ("/gone", 404)))
    ]
    made.land(middle, logged, name="access.log")
    display = {"ad_id": "a", "page": "/", "visit_id": "v", "display_time": f"{last}:10:00Z"}
    lines = [json.dumps({**display, "campaign": name}).encode() for name in ("spring", "other")]
    made.land(last, [*lines, b"{}"], name="ads-more.json", table="ads")
    assert made.run().problems == []
