"""A time window that a person requested."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from blogdata.publish.partitions import Grain, start_of


@dataclass(frozen=True, kw_only=True)
class Window:
    """A half-open time window: start included, end excluded; None leaves that side open."""

    start: datetime | None
    end: datetime | None

    @classmethod
    def parsed(cls, text: str) -> Window:
        """Parse the text of :meth:`written`."""
        start, _, end = text.partition("..")
        return cls(
            start=datetime.fromisoformat(start) if start else None, end=datetime.fromisoformat(end) if end else None
        )

    def written(self) -> str:
        """Format the window as `start..end`, ISO 8601; an open side is empty."""
        return f"{self.start.isoformat() if self.start else ''}..{self.end.isoformat() if self.end else ''}"

    def holds(self, key: str, grain: Grain | None) -> bool:
        """Return whether a partition overlaps the window; always true for a table that is written whole."""
        if grain is None:
            return True
        start = start_of(key, grain)
        return (self.end is None or start < self.end) and (self.start is None or start + grain.length > self.start)
