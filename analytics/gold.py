"""What the team relies on in the platform's gold tables: compared with a table before it is read.

If a column is gone or has another type, the run fails and names it and its owner; the results of before stay.

Where the gold tables are, and where the team's own tables and files go.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
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


def write_whole(file: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


@dataclass(frozen=True, kw_only=True)
class Upstream:
    name: str
    owner: str
    columns: Mapping[str, str]

    @property
    def dataset(self) -> str:
        return f"gold.{self.name}"


DAILY_REPORT = Upstream(
    name="daily_report",
    owner="team:platform",
    columns={"event_date": "string", "metric": "string", "value": "long", "completeness": "double"},
)
PAGE_STATS = Upstream(
    name="page_stats",
    owner="team:analytics",
    columns={"event_date": "string", "page": "string", "events": "long", "hours_present": "integer"},
)


class GoldChanged(Exception):
    """Raised when a gold table is not what the team relies on."""

    def __init__(self, upstream: Upstream, problems: Sequence[str]) -> None:
        super().__init__(f"{upstream.dataset}: {'; '.join(problems)}; ask its owner, {upstream.owner}")


def opened(gold: Path, upstream: Upstream) -> DeltaTable:
    """Open the newest version of a table; :class:`GoldChanged` if it, a column or the type of one is another."""
    try:
        delta = DeltaTable(str(gold / upstream.name))
    except TableNotFoundError as error:
        raise GoldChanged(upstream, ["was never published"]) from error
    types = {field.name: getattr(field.type, "type", "nested") for field in delta.schema().fields}
    problems = [
        f"has no column {name} any more" if name not in types else f"{name} is {types[name]}, and was {expected}"
        for name, expected in upstream.columns.items()
        if types.get(name) != expected
    ]
    if problems:
        raise GoldChanged(upstream, problems)
    return delta


def select(table: DeltaTable, query: str) -> list[dict[str, Any]]:
    """Run a query on a table, named `t`; returns its rows."""
    rows: list[dict[str, Any]] = pa.table(QueryBuilder().register("t", table).execute(query).read_all()).to_pylist()
    return rows


def first_day(gold: Path) -> str | None:
    """Find the first day of the page views, like `2026-01-05`; None while none is published."""
    try:
        days = DeltaTable(str(gold / PAGE_STATS.name)).partitions()
    except TableNotFoundError:
        return None
    return min((day["event_date"] for day in days), default=None)
