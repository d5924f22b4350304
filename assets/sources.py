"""The external assets: data from outside, which the platform reads and never writes."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

LANDING_VISITS = dg.AssetSpec(
    ["landing", "visits"],
    deps=[dg.AssetKey(["landing", "hourly_access_logs"])],
    description="Visit events and access log lines by hour of arrival, with _SUCCESS when an hour is complete",
    group_name="landing",
    kinds={"json"},
)
LANDING_USERS = dg.AssetSpec(
    ["landing", "users"],
    description="Daily full delivery of the users, and changed users of a table",
    group_name="landing",
    kinds={"json"},
)
LANDING_DEVICES = dg.AssetSpec(
    ["landing", "devices"], description="Full delivery of the devices", group_name="landing", kinds={"csv"}
)
LANDING_ADS = dg.AssetSpec(
    ["landing", "ads"],
    description="Displayed ads by hour of arrival, with _SUCCESS when an hour is complete",
    group_name="landing",
    kinds={"json"},
)
LANDING_ACCESS_LOGS = dg.AssetSpec(
    ["landing", "access_logs"],
    description="Access logs of the blog's web servers",
    group_name="landing",
    kinds={"file"},
)
SOURCES = (LANDING_VISITS, LANDING_USERS, LANDING_DEVICES, LANDING_ADS, LANDING_ACCESS_LOGS)


def specs(loaded: Sequence[dg.AssetsDefinition]) -> list[dg.AssetSpec]:
    """Return the external assets of a deployment, each with the assets of `loaded` tables that write to it.

    `landing/devices_table` writes to `landing/devices`, `landing/users_table` to `landing/users`, others to visits.
    """
    writers: dict[str, list[dg.AssetsDefinition]] = {}
    for asset in loaded:
        table, dash, _ = asset.key.path[-1].partition("_table")
        writers.setdefault(table if dash else "visits", []).append(asset)
    return [spec.replace_attributes(deps=[*spec.deps, *writers.get(spec.key.path[-1], ())]) for spec in SOURCES]
