"""What a run is given, by schemas that take values only, and what it tells as a table.

The schema that Dagster derives from a model takes `{"env": NAME}` in place of each value: whoever may launch a run
reads the variables of its process, passwords among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

_KINDS: Mapping[Any, Any] = {bool: bool, int: int, str: str, list[str]: [str], dict[str, list[str]]: {str: [str]}}


def values_only(model: type[dg.Config]) -> dict[str, dg.Field]:
    """Return the schema of a model, whose fields are required or have defaults as the model says."""
    schema = {}
    for name, field in model.model_fields.items():
        default = {} if field.is_required() else {"default_value": field.get_default(call_default_factory=True)}
        schema[name] = dg.Field(_KINDS[field.annotation], description=field.description, **default)
    return schema


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as metadata of a name; Dagster has no table without rows, so nothing then."""
    return {name: dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows])} if rows else {}
