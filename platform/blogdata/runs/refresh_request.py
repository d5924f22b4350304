"""What a run of the job `refresh` was asked for, and what its steps found out together."""

from collections.abc import Callable, Collection, Mapping

import dagster as dg
from pydantic import Field, PrivateAttr

from blogdata.errors import PlatformError
from blogdata.planning.plan import Window
from blogdata.planning.staleness import Lane, Scope

JOB = "refresh"
Held = Mapping[str, Mapping[str, PlatformError]]
"""Dataset to its held partitions, each with the reason."""


class Request(dg.ConfigurableResource["Request"]):
    """Request of a `refresh` run; the default is everything that is stale.

    Stale partitions count by `scope` and `lane` (:class:`Scope`, :class:`Lane`), and not with `only_again`: then only
    the partitions `again`, and all known ones of `span`, such as `2026-01-05T00..2026-01-07T00`; an end may be empty.
    """

    datasets: list[str] = Field(default_factory=list)
    scope: str = Scope.ALL.value
    again: dict[str, list[str]] = Field(default_factory=dict)
    span: str = ""
    only_again: bool = False
    retry_waiting: bool = True
    lane: str = Lane.ALL.value
    max_republished: int = 0
    _blocked: set[str] = PrivateAttr(default_factory=set)
    _held: Held | None = PrivateAttr(default=None)

    def is_for(self, datasets: Collection[str]) -> bool:
        return not self.datasets or not set(datasets).isdisjoint(self.datasets)

    @property
    def blocked(self) -> set[str]:
        """Datasets of which nothing is computed in the rest of this run."""
        return self._blocked

    def held_before(self, look: Callable[[], Held]) -> Held:
        """Return the partitions that were held when this run started; computed by its first step, then cached."""
        if self._held is None:
            self._held = look()
        return self._held

    @property
    def window(self) -> Window | None:
        return Window.parsed(self.span) if self.span else None
