"""One finding: something about a dataset that a person should know, as checks, alerts and the report show it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from blogdata.errors.remedies import Remedy


class Severity(str, Enum):
    WARNING = "warning"
    """Readers get correct data; somebody should look at it in office hours."""
    CRITICAL = "critical"
    """Data is missing, late beyond its promise, or waits for a person."""

    def is_at_least(self, least: Severity) -> bool:
        order = list(Severity)
        return order.index(self) >= order.index(least)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a dataset that holds now and that a person should know."""

    source: str
    dataset: str
    owner: str
    severity: Severity
    what: str
    remedy: Remedy
    partition: str | None = None
    """The partition concerned; None: the dataset as a whole."""

    @property
    def title(self) -> str:
        about = f"{self.dataset} {self.partition}" if self.partition else self.dataset
        return f"{about}: {self.source}"

    @property
    def identity(self) -> str:
        """What stays the same while the finding stands, even if its text changes."""
        return "/".join([self.source, self.dataset, *([] if self.partition is None else [self.partition])])
