"""The reach of a table that repeats what another one says (Denormalizer): it is stale while it shows something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blogdata.lake.commit import WHOLE_TABLE
from blogdata.publish.contract import Edge, Look, Wanted


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A partition repeats some values of a table that is written whole.

    What is compared are the values and no versions: a publication of the table without another value makes nothing
    stale, and neither does a value that the partition does not show.
    """

    breakdown: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that show what the table does not say any more."""
        above = look.published(edge.above).get(WHOLE_TABLE)
        if above is None:
            return {}
        said = above.breakdowns.get(self.breakdown, {}).keys()
        shown = {
            key: entry.breakdowns.get(self.breakdown, {}).keys() - said
            for key, entry in sorted(look.published(edge.below.dataset).items())
        }
        return {key: f"{edge.above} no longer says {sorted(map(str, rows))}" for key, rows in shown.items() if rows}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Return nothing: whether the table says something else is known only after it was computed."""
        return {}
