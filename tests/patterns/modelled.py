"""Two modelled weeks, published once for the tests of both models."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.origins import three_hours
from quality.contracts.visits_model import DEVICE, DEVICES, STAR_HOSTS, VIEWS

WEEK, NEXT_WEEK = "2026-01-05", "2026-01-12"
OBT = "gold.visits_obt"
TABLES = (VIEWS, DEVICES, STAR_HOSTS)
NORMALIZED = (
    f"SELECT v.*, d.device_name, h.site, h.kind FROM {VIEWS} v JOIN {DEVICES} d USING (device_type, device_version)"
    f" JOIN {STAR_HOSTS} h USING (referral_host)"
)


def modelled(deploy: Deploy, name: str) -> Deployment:
    return deploy.published(name, modelled_weeks, three_hours)


def renamed(deploy: Deploy, name: str) -> Deployment:
    return deploy.published(name, renamed_device, three_hours, modelled_weeks)


def modelled_weeks(made: Deployment) -> None:
    """Publish two weeks of few hours that a person asks for, with late rows; the second one has no known device."""
    made.land(f"{NEXT_WEEK}T10", [event("10:05", "/next").replace(WEEK.encode(), NEXT_WEEK.encode())])
    assert made.run(for_=["silver.visits_enriched"]).problems == []
    assert made.run(for_=[OBT]).runs == 0, "no week is complete"
    assert made.replay(VIEWS, WEEK, NEXT_WEEK).problems == []


def renamed_device(made: Deployment) -> None:
    """Deliver the devices of two modelled weeks again, with the first name replaced."""
    rename(made, "2026-01-13", first_named(made), "Renamed")
    assert made.run(for_=[OBT]).problems == []


def rows_of(deployment: Deployment, query: str, *columns: str) -> Counter[tuple[Any, ...]]:
    with deployment.session() as spark:
        for name in deployment.versions():
            if name.startswith("gold.visits_") and deployment.published(name):
                deployment.lake.read(spark, name).createOrReplaceTempView(name.replace(".", "_"))
        found = spark.sql(f"SELECT {', '.join(columns)} FROM ({query.replace('gold.', 'gold_')})")
        return Counter(map(tuple, found.collect()))


def named_devices(deployment: Deployment) -> dict[tuple[str, str], str]:
    return {(kind, version): name for kind, version, name in deployment.rows(DEVICES, *DEVICE, "device_name")}


def first_named(deployment: Deployment) -> tuple[str, str]:
    return min(device for device, name in named_devices(deployment).items() if name)


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
