"""How urgent something is that a person should know."""

from __future__ import annotations

from enum import Enum


class Severity(str, Enum):
    WARNING = "warning"
    """Readers get correct data; somebody should look at it in office hours."""
    CRITICAL = "critical"
    """Data is missing, late beyond its promise, or waits for a person."""

    def is_at_least(self, least: Severity) -> bool:
        order = list(Severity)
        return order.index(self) >= order.index(least)
