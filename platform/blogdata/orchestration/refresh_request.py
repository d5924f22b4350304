"""What a run of the job `refresh` was asked for, and what its steps found out together."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import dagster as dg
from pydantic import Field, PrivateAttr

from blogdata.errors import PlatformError
from blogdata.planning.staleness import Lane, Scope

JOB = "refresh"
Held = Mapping[str, Mapping[str, PlatformError]]
"""Dataset to its held partitions, each with the reason."""


class Request(dg.ConfigurableResource["Request"]):
    """Request of a `refresh` run; the default is everything that is stale.

    Args:
        datasets: Only these datasets; empty: all.
        scope: Which stale partitions count: `all`, `ready` (those that may run automatically) or `ended`.
        span: Time window in which all known partitions run again, such as `2026-01-05T00..2026-01-07T00`; either end
            may be empty.
        only_again: Run only `again` and `span`; skip stale partitions that were not requested.
        since: Dataset to its table version when `again` was requested: what was computed since, from all that is
            requested above it, is not computed once more. Empty: the versions at the beginning of the run.
        lane: Which stale partitions count, by what made them stale: `all`, `landed` or `again`.
        few_again: How many partitions of a dataset that were published before the lane `landed` computes, too.
    """

    datasets: list[str] = Field(default_factory=list)
    scope: str = Scope.ALL.value
    again: dict[str, list[str]] = Field(default_factory=dict)
    span: str = ""
    only_again: bool = False
    since: dict[str, int] = Field(default_factory=dict)
    retry_waiting: bool = True
    lane: str = Lane.ALL.value
    few_again: int = 0
    _blocked: set[str] = PrivateAttr(default_factory=set)
    _found: dict[str, Any] = PrivateAttr(default_factory=dict)

    def is_for(self, datasets: Collection[str]) -> bool:
        return not self.datasets or not set(datasets).isdisjoint(self.datasets)

    def block_downstream(self, datasets: Sequence[str]) -> None:
        """Block everything downstream of the datasets for the rest of this run."""
        self._blocked.update(datasets)

    @property
    def blocked(self) -> frozenset[str]:
        """Datasets whose downstream is blocked in this run."""
        return frozenset(self._blocked)

    def held_before(self, look: Callable[[], Held]) -> Held:
        """Return the partitions that were held when this run started; computed by its first step, then cached."""
        return cast("Held", self._once("held", look))

    @property
    def is_again(self) -> bool:
        """Whether all that it computes was published before, or is asked for by name."""
        return self.only_again or self.lane == Lane.AGAIN.value

    def asked_at(self, look: Callable[[], Mapping[str, int]]) -> Mapping[str, int]:
        """Return the versions of the tables when this was requested, or when its first step looked."""
        return self.since or self._once("begun", look)

    def _once(self, name: str, look: Callable[[], Any]) -> Any:
        if name not in self._found:
            self._found[name] = look()
        return self._found[name]
