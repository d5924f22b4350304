"""The reach of a dataset that joins rows across the borders of partitions (Dynamic Joiner)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from blogdata.planning.reach import Same
from blogdata.publish.contract import Edge, Look, Wanted
from blogdata.publish.partitions import Grain, between, key_of, start_of

_NO_TIME = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Around(Same):
    """A partition reads the one with the same key, and the neighbours whose rows may belong to its own.

    Args:
        before: How long before its begin rows matter.
        after: How long after its end rows matter.
        since: Dataset with whose first partition the reader begins; None: with the input's own.
    """

    grain: Grain
    before: timedelta = _NO_TIME
    after: timedelta = _NO_TIME
    since: str | None = None

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Return the newest version among the input partitions that each partition reads."""
        above = look.published(edge.above)
        own = {*self._from_the_first(look, above, {}), *look.published(edge.below.dataset)}
        read = {key: [above[part].version for part in self.parts(key) if part in above] for key in own}
        return {key: max(versions) for key, versions in read.items() if versions}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the partitions with the same keys, and the published ones that have them as neighbours."""
        keys = wanted.get(edge.above, {})
        published = look.published(edge.below.dataset)
        readers = Around(grain=self.grain, before=self.after, after=self.before)
        near = {reader: key for key in keys for reader in readers.parts(key) if reader in published}
        return near | {key: key for key in self._from_the_first(look, keys, wanted)}

    def parts(self, key: str) -> Sequence[str]:
        """List the input partitions that a partition reads, itself included."""
        start = start_of(key, self.grain)
        last = start + self.grain.length + self.after - timedelta.resolution
        return between(key_of(start - self.before, self.grain), key_of(last, self.grain), self.grain)

    def _from_the_first(self, look: Look, keys: Mapping[str, object], wanted: Wanted) -> list[str]:
        if self.since is None:
            return list(keys)
        first = min([*look.published(self.since), *wanted.get(self.since, ())], default=None)
        return [] if first is None else [key for key in keys if key >= first]
