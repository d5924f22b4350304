"""The reach of answers that are looked up in a step of their own: the partitions that lack one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from blogdata.publish.contract import Edge, Look, Wanted


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A partition with rows that lack an answer is stale when the table of answers has more of them."""

    lacking: str
    answered: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that lack answers, or never read any, and may find some now."""
        history = look.history(edge.above)
        counts = [(entry.version, int(entry.measures.get(self.answered) or 0)) for entry in history]
        # A publication without a new answer makes nothing stale.
        new = [counts[0][0]] if counts else []
        new += [version for (_, before), (version, count) in pairwise(counts) if count > before]
        newest = max(new, default=-1)
        return {
            key: f"{edge.above} version {newest}"
            for key, entry in sorted(look.published(edge.below.dataset).items())
            if entry.inputs.get(edge.above, -1) < newest
            and (edge.above not in entry.inputs or int(entry.measures.get(self.lacking) or 0) > 0)
        }

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Return the partitions that never read any answers, as after an upgrade: the first answers make them stale.

        No other: a given answer does not change, and new ones are found after they are published.
        """
        if not wanted.get(edge.above):
            return {}
        published = look.published(edge.below.dataset)
        return {key: "for the first time" for key, entry in published.items() if edge.above not in entry.inputs}
