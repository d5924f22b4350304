"""The reach of an Unaligned Fan-In: a period reads those hours within it that are there, even if there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blogdata.patterns.data_flow import unaligned_fan_in
from blogdata.planning.reach import Within
from blogdata.publish.contract import Edge, Look
from blogdata.publish.partitions import Grain, coarser


@dataclass(frozen=True, kw_only=True)
class Available(Within):
    """A period reads the hours within it that are there; a period within a short silence of the source has none."""

    delivered: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the periods that lack newer hours, and unpublished ones between two with a delivery."""
        assert edge.below.partitioning is not None
        grain = edge.below.partitioning.grain
        delivered = {coarser(hour, Grain.HOUR, grain) for hour in look.published(self.delivered)}
        published = look.published(edge.below.dataset)
        silent = {
            key: f"no hour of {edge.above}" for key in unaligned_fan_in.silent(delivered, grain) if key not in published
        }
        return {**silent, **super().behind(look, edge)}
