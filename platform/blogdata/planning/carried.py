"""The reach of partitions that continue from what the partition before has left pending (Incremental Sessionizer)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blogdata.lake.commit import Entry
from blogdata.publish.contract import Edge, Look, Wanted
from blogdata.publish.partitions import Grain, following, previous

TOGETHER = "pending of this commit"
"""What a partition has read whose previous partition was published by the same commit."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """A partition continues from the rows that the one before has left pending (a dataset reads itself).

    What a partition has read is stored with its publication, in `landed`. If a partition runs again and leaves the same
    rows pending, the later ones are not stale.

    Args:
        measure: Name of the dataset's measure with a digest of its pending rows; 0 or null if nothing is pending.
    """

    measure: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that have read other pending rows than are there, and missing ones that must close some.

        The partition after the newest one is not missing: its time has not come.
        """
        published, grain = look.published(edge.below.dataset), edge.grain
        newest = max(published, default="")
        before = {key: previous(key, grain) for key in published}
        earlier = {
            (entry.partition, entry.version): entry
            for entry in (look.history(edge.below.dataset) if self._any_moved(published, before) else ())
        }
        found = {}
        for key, entry in published.items():
            there, read = self.left_by(published.get(before[key])), entry.landed or self.left_by(None)
            if read == TOGETHER:
                read = self.left_by(earlier.get((before[key], entry.version), published.get(before[key])))
            if read != there:
                found[key] = there
            following_key = following(key, grain)
            if entry.measures.get(self.measure) and following_key <= newest and following_key not in published:
                found[following_key] = self.left_by(entry)
        return found

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Return nothing: whether a later partition changes is known only after the one before has run."""
        return {}

    def left_by(self, entry: Entry | None) -> str:
        """Return the text of what a partition has left pending; None stands for a partition that is not published."""
        return f"pending {(entry.measures.get(self.measure) if entry else None) or 0}"

    def read(self, published: Mapping[str, Entry], keys: frozenset[str], grain: Grain) -> dict[str, str]:
        """Return, for each of the partitions that one commit publishes, what it has read of the one before."""
        before = {key: previous(key, grain) for key in keys}
        return {key: TOGETHER if before[key] in keys else self.left_by(published.get(before[key])) for key in keys}

    def _any_moved(self, published: Mapping[str, Entry], before: Mapping[str, str]) -> bool:
        return any(
            entry.landed == TOGETHER and before[key] in published and published[before[key]].version != entry.version
            for key, entry in published.items()
        )
