"""Names of datasets, steps and tags in Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

EVENT = "blogdata/event_"
"""Prefix of the tags of a run that an event from outside started; each tag has one field of the event's context."""


def asset_key(dataset: str) -> dg.AssetKey:
    """Return the asset key of a dataset: `silver.visits` becomes `silver/visits`."""
    # Imported here, because it takes seconds: a command that only names a tag does not wait for it.
    import dagster as dg

    return dg.AssetKey(dataset.split(".", 1))


def step_of(dataset: str) -> str:
    """Return the step name of a dataset, the same in every job: `silver.visits` becomes `silver__visits`."""
    return dataset.replace(".", "__")


def op_of(dataset: str) -> str:
    """Return the op name of a dataset in the job `refresh`; it differs from the name of the asset's op."""
    return f"refresh__{step_of(dataset)}"


def slug(pattern: str) -> str:
    """Return a pattern's name as used in tags: `Late Data Detector` becomes `late-data-detector`."""
    return pattern.lower().replace(" ", "-").replace("(", "").replace(")", "")
