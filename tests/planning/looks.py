"""Publications in place of a snapshot, for reaches that are tried alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blogdata.lake.commit import Entry


@dataclass
class Look:
    """The newest publications, by dataset and partition."""

    tables: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def publish(self, dataset: str, version: int, *keys: str, rows: int = 1, **info: Any) -> None:
        given: Any = {"dataset": dataset, "version": version, "rows_in": rows, "rows_out": rows, "reasons": {}, **info}
        self.tables.setdefault(dataset, {}).update({key: Entry(partition=key, **given) for key in keys})

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return self.tables.get(dataset, {})
