"""Names of datasets, steps and tags in Dagster, the schema of a run's values, and tables among its metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

EVENT = "blogdata/event_"
"""Prefix of the tags of a run that an event from outside started; each tag has one field of the event's context."""
_KINDS: Mapping[Any, Any] = {bool: bool, int: int, str: str, list[str]: [str], dict[str, list[str]]: {str: [str]}}


def asset_key(dataset: str) -> dg.AssetKey:
    """Return the asset key of a dataset: `silver.visits` becomes `silver/visits`."""
    return dg.AssetKey(dataset.split(".", 1))


def step_of(dataset: str) -> str:
    """Return the step name of a dataset, the same in every job: `silver.visits` becomes `silver__visits`."""
    return dataset.replace(".", "__")


def slug(pattern: str) -> str:
    """Return a pattern's name as used in tags: `Late Data Detector` becomes `late-data-detector`."""
    return pattern.lower().replace(" ", "-").replace("(", "").replace(")", "")


def values_only(model: type[dg.Config]) -> dict[str, dg.Field]:
    """Return the schema of a model, with its defaults, that takes values only.

    The schema that Dagster derives takes `{"env": NAME}` in place of each value: whoever may launch a run reads the
    variables of its process, passwords among them.
    """
    schema = {}
    for name, field in model.model_fields.items():
        default = {} if field.is_required() else {"default_value": field.get_default(call_default_factory=True)}
        schema[name] = dg.Field(_KINDS[field.annotation], description=field.description, **default)
    return schema


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as metadata of a name; Dagster has no table without rows, so nothing then."""
    return {name: dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows])} if rows else {}
