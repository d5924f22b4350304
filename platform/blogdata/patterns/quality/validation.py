"""Validation results: for each promise of a dataset, whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """The result of one promise: it holds, it is broken, or it could not be evaluated.

    Args:
        found: Number of rows, values or groups that break it; None if they were not counted.
        error: First line of the exception that its evaluation raised, without the values it quotes; None if there
            was none.
    """

    rule: str
    description: str
    passed: bool
    found: int | None = None
    error: str | None = None

    def __str__(self) -> str:
        """The rule's name, followed by the number of violations if it was counted: `not_null.user_id (3)`."""
        return self.rule if self.found is None else f"{self.rule} ({self.found})"


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The results of all promises of one dataset."""

    dataset: str
    results: Sequence[RuleResult]

    @property
    def passed(self) -> bool:
        """True if every promise was evaluated and holds."""
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
        """The promises that could not be evaluated, so it is unknown whether they hold."""
        return [result for result in self.results if result.error is not None]
