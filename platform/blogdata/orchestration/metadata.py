"""Metadata of a run that is a table, for Dagster's pages and for `blogdata job`."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as metadata of a name; Dagster has no table without rows, so nothing then."""
    return {name: dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows])} if rows else {}
