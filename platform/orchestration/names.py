"""The names by which datasets, steps and tags are known to Dagster."""

from __future__ import annotations

import dagster as dg

ACCEPT = "blogdata/accept"
"""Tag of a run: the guards, separated by commas, that a person has lifted for it."""


def key_of(dataset: str) -> dg.AssetKey:
    """Give the asset key of a dataset: `silver.visits` is `silver/visits`."""
    return dg.AssetKey(dataset.split(".", 1))


def step_of(dataset: str) -> str:
    """Give the name of a dataset's step, in whichever run: that of `silver.visits` is `silver__visits`."""
    return dataset.replace(".", "__")


def op_of(dataset: str) -> str:
    """Give the name of what a run over the lineage does at a dataset's step; assets have names of their own."""
    return f"refresh__{step_of(dataset)}"


def slug(pattern: str) -> str:
    """Give a pattern's name as it appears in tags: `Late Data Detector` is `late-data-detector`."""
    return pattern.lower().replace(" ", "-").replace("(", "").replace(")", "")
