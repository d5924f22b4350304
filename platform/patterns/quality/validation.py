"""What became of the promises of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """What became of one promise: it holds, it is broken, or it could not be evaluated.

    Args:
        rule: Name of the promise, the same as in the audit of a write.
        description: What it says.
        passed: True when it holds.
        found: Rows, values or groups that break it; None when it is not counted.
        error: First line of the exception that its evaluation raised, without the values it quotes; None when there
            was none.
    """

    rule: str
    description: str
    passed: bool
    found: int | None = None
    error: str | None = None

    def __str__(self) -> str:
        """The rule's name, with what breaks it where that was counted."""
        return self.rule if self.found is None else f"{self.rule} ({self.found})"


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What became of the promises of one dataset."""

    dataset: str
    results: Sequence[RuleResult]

    @property
    def passed(self) -> bool:
        """True when every promise was evaluated and holds."""
        return all(result.passed for result in self.results)

    @property
    def kept(self) -> int:
        """How many promises hold."""
        return sum(result.passed for result in self.results)

    @property
    def broken(self) -> Sequence[RuleResult]:
        """The promises that were evaluated and do not hold."""
        return [result for result in self.results if not result.passed and result.error is None]

    @property
    def errors(self) -> Sequence[RuleResult]:
        """The promises that could not be evaluated: nothing is known about them."""
        return [result for result in self.results if result.error is not None]
