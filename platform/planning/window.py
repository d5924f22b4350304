"""A span of time that a person names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from publish.partitions import Grain, start_of


@dataclass(frozen=True, kw_only=True)
class Window:
    """A span of time, the end not included; an end that is None is open."""

    start: datetime | None
    end: datetime | None

    @classmethod
    def parsed(cls, text: str) -> Window:
        """Read what :meth:`written` has written."""
        start, _, end = text.partition("..")
        return cls(
            start=datetime.fromisoformat(start) if start else None, end=datetime.fromisoformat(end) if end else None
        )

    def written(self) -> str:
        """Write it as one text."""
        return f"{self.start.isoformat() if self.start else ''}..{self.end.isoformat() if self.end else ''}"

    def holds(self, key: str, grain: Grain | None) -> bool:
        """Tell whether a partition overlaps the span; a table that is written whole always does."""
        if grain is None:
            return True
        start = start_of(key, grain)
        return (self.end is None or start < self.end) and (self.start is None or start + grain.length > self.start)
