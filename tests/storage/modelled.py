"""Two modelled weeks, published once for the tests of both models."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS
from quality.contracts.visits_model import DEVICE, DEVICES, HOSTS, SITES, STAR_HOSTS, VIEWS

WEEK, NEXT_WEEK = "2026-01-05", "2026-01-12"
OBT = "gold.visits_obt"
SNOWFLAKE = (VIEWS, DEVICES, HOSTS, SITES)
NORMALIZED = (
    f"SELECT v.*, d.device_name, h.site, s.kind FROM {VIEWS} v JOIN {DEVICES} d USING (device_type, device_version)"
    f" JOIN {HOSTS} h USING (referral_host) JOIN {SITES} s USING (site)"
)
STAR = (
    f"SELECT v.*, d.device_name, h.site, h.kind FROM {VIEWS} v JOIN {DEVICES} d USING (device_type, device_version)"
    f" JOIN {STAR_HOSTS} h USING (referral_host)"
)


def modelled_weeks(made: Deployment) -> None:
    """Publish two weeks of few hours that a person asks for, with late rows; the second one has no known device."""
    spec = SimulationSpec(days=1, visits_per_day=1000, seed=5, faults=FaultRates.none(duplicate=0.1, late=0.2))
    with TemporaryDirectory() as folder:
        world = Deployment.create(Path(folder) / "world")
        world.simulate(spec)
        made.copy_hours(world, THREE_HOURS)
    made.land(f"{NEXT_WEEK}T10", [event("10:05", "/next").replace(WEEK.encode(), NEXT_WEEK.encode())])
    assert made.run(for_=["silver.visits_enriched"]).problems == []
    assert made.run(for_=[OBT]).runs == 0, "no week is complete"
    assert made.replay(VIEWS, WEEK, NEXT_WEEK).problems == []


def rows_of(deployment: Deployment, query: str, *columns: str) -> Counter[tuple[Any, ...]]:
    """Count the rows of a query of modelled page views."""
    with deployment.session() as spark:
        for name in deployment.versions():
            if name.startswith("gold.visits_") and deployment.published(name):
                deployment.lake.read(spark, name).createOrReplaceTempView(name.replace(".", "_"))
        found = spark.sql(f"SELECT {', '.join(columns)} FROM ({query.replace('gold.', 'gold_')})")
        return Counter(map(tuple, found.collect()))


def named_devices(deployment: Deployment) -> dict[tuple[str, str], str]:
    """Map each device of page views to its name."""
    return {(kind, version): name for kind, version, name in deployment.rows(DEVICES, *DEVICE, "device_name")}


def rename(deployment: Deployment, day: str, device: tuple[str, str], name: str) -> None:
    """Deliver all devices again, one of them with another name."""
    delivered = deployment.rows("bronze.devices", "type", "version", "full_name")
    lines = [
        {"type": kind, "version": version, "full_name": name if (kind, version) == device else old}
        for kind, version, old in delivered
        if kind
    ]
    folder = deployment.landing / "devices" / f"date={day}"
    folder.mkdir(parents=True)
    (folder / "devices.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "_SUCCESS").touch()
