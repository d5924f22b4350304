"""One finding: something about a dataset that a person should know, as checks, alerts and the report show it."""

from __future__ import annotations

from dataclasses import dataclass, field

from blogdata.errors.remedies import Remedy
from blogdata.errors.severity import Severity

__all__ = ["Finding", "Severity"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a dataset that holds now and that a person should know.

    Args:
        partition: The partition concerned; None: the dataset as a whole.
        figures: What was measured and its bounds, by name; durations in seconds, shares 0 to 1.
    """

    source: str
    dataset: str
    owner: str
    severity: Severity
    what: str
    remedy: Remedy
    partition: str | None = None
    figures: dict[str, float] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        about = f"{self.dataset} {self.partition}" if self.partition else self.dataset
        return f"{about}: {self.source}"

    @property
    def identity(self) -> str:
        """What stays the same while the finding stands, even if its text and figures change."""
        return "/".join([self.source, self.dataset, *([] if self.partition is None else [self.partition])])
