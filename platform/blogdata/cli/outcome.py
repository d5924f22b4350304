"""The result of a command."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Outcome:
    """What a command ran and published, with its problems and warnings."""

    runs: int = 0
    rows: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing failed."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON-compatible values."""
        return {"ok": self.ok, **asdict(self), "seconds": round(self.seconds, 1)}
