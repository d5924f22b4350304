"""Results outside the lake, such as another team's tables: each writer leaves OpenLineage events beside them.

A writer that knows nothing of the platform's tables logs, and that the platform knows nothing of, is in the lineage all
the same: the events have its owner, and the datasets that it has read with their versions.

Source: OpenLineage specification 2-0-2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from blogdata.errors import PlatformError

FOLDER = "openlineage"
"""Folder of the events beside the results: `<dataset>/<version>.json`, with one event per line."""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A result, as its writer has reported it.

    Args:
        inputs: Dataset to the version that was read; None if it has none.
    """

    dataset: str
    owner: str | None
    inputs: Mapping[str, int | None]
    ended_at: datetime
    file: Path


def reported(folders: Iterable[Path]) -> list[Reported]:
    """Read the reported results of some folders, oldest first; a folder that is not there has none."""
    found = [_reported(file) for folder in folders for file in sorted(folder.glob("*/[!.]*.json"))]
    return sorted(found, key=lambda one: one.ended_at)


def newest_of_each(results: Sequence[Reported]) -> dict[str, Reported]:
    """Map each dataset to its newest result; of results that are oldest first."""
    return {one.dataset: one for one in results}


def _reported(file: Path) -> Reported:
    try:
        # Other line ends than these may be part of a JSON text.
        events = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
        (complete,) = [event for event in events if event["eventType"] == "COMPLETE"]
        (output,) = complete["outputs"]
        return Reported(
            dataset=output["name"],
            owner=_owner(output),
            inputs={one["name"]: _version(one) for one in complete["inputs"]},
            ended_at=_time(complete["eventTime"]),
            file=file,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlatformError(
            what=f"this is no completed run with one result in OpenLineage: {error!r}",
            where=str(file),
            next_step="have its writer leave it again, or remove it",
        ) from error


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if found.tzinfo is None:
        raise ValueError(f"the time {text} has no zone")
    return found


def _owner(output: Mapping[str, Any]) -> str | None:
    owners = output.get("facets", {}).get("ownership", {}).get("owners", [])
    return next((one["name"] for one in owners if one.get("type", "OWNER") == "OWNER"), None)


def _version(one: Mapping[str, Any]) -> int | None:
    version = str(one.get("facets", {}).get("version", {}).get("datasetVersion", ""))
    return int(version) if version.isdigit() else None
