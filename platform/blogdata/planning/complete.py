"""The reach of a fan-in that waits for every part: a period is computed once all of its hours are there, not before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from blogdata.planning.reach import Within
from blogdata.publish.contract import Edge, Look, Wanted


@dataclass(frozen=True, kw_only=True)
class Complete(Within):
    """A period reads the hours within it, once all of them are published; then it stays up to date.

    An hour in which nothing happened is published, too, if its empty delivery is flagged. A period one of whose hours
    never comes is not computed by itself.
    """

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Return the newest version among the hours of each period that is complete or was published."""
        found, hours = super().required(look, edge), look.published(edge.above).keys()
        return {key: version for key, version in found.items() if self._is_due(look, edge, key, hours)}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the periods that contain the hours and are complete, with hours that run before them, or published."""
        found = super().reached(look, edge, wanted, asked)
        hours = {*look.published(edge.above), *wanted.get(edge.above, {})}
        return {key: hour for key, hour in found.items() if self._is_due(look, edge, key, hours)}

    def _is_due(self, look: Look, edge: Edge, key: str, hours: Collection[str]) -> bool:
        return key in look.published(edge.below.dataset) or all(hour in hours for hour in self.parts(key, edge.grain))


COMPLETE = Complete()
