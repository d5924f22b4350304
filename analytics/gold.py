"""What the team relies on in the platform's gold table, and where it and the team's own are.

A column that is gone or has another type fails a check that names it and its owner. Nothing is computed then, and the
results of before stay.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError


class FoldersResource(dg.ConfigurableResource["FoldersResource"]):
    """The folders, when a run asks; if empty, those of `ANALYTICS_GOLD` and `ANALYTICS_HOME`, or in `BLOGDATA_HOME`."""

    gold: str = ""
    own: str = ""

    @property
    def gold_folder(self) -> Path:
        return Path(self.gold or os.environ.get("ANALYTICS_GOLD") or _home() / "lake" / "gold")

    @property
    def own_folder(self) -> Path:
        return Path(self.own or os.environ.get("ANALYTICS_HOME") or _home() / "analytics")


def _home() -> Path:
    return Path(os.environ.get("BLOGDATA_HOME", "var"))


DAILY_REPORT = "gold.daily_report"
PLATFORM = "team:platform"
COLUMNS = {"event_date": "string", "metric": "string", "value": "long", "completeness": "double"}
"""Columns of the report that are read, with their types."""


class GoldChanged(Exception):
    """Raised when the report is not what the team relies on."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{DAILY_REPORT}: {'; '.join(problems)}; ask its owner, {PLATFORM}")


def opened(gold: Path) -> DeltaTable:
    """Open the newest report; :class:`GoldChanged` if it, a column or the type of one is another."""
    try:
        report = DeltaTable(str(gold / "daily_report"))
    except TableNotFoundError as error:
        raise GoldChanged(["was never published"]) from error
    types = {field.name: getattr(field.type, "type", "nested") for field in report.schema().fields}
    problems = [
        f"has no column {name} any more" if name not in types else f"{name} is {types[name]}, and was {expected}"
        for name, expected in COLUMNS.items()
        if types.get(name) != expected
    ]
    if problems:
        raise GoldChanged(problems)
    return report
