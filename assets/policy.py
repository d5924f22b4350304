"""What is the same for all of the blog's datasets, laid over them in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg

import assets
import patterns
import quality
from orchestration import dataset as building_block
from orchestration.step import Step
from patterns.core.commit import Commit
from quality.contracts import CONTRACTS

SOURCES = tuple(Path(package.__file__ or "").parent for package in (assets, patterns, quality))


def blog_dataset(
    name: str,
    *,
    deps: Sequence[dg.AssetDep | dg.AssetsDefinition | dg.AssetSpec] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    automation: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> Callable[[Callable[[Step], Commit]], dg.AssetsDefinition]:
    """Declare one of the blog's datasets by the name of its contract."""
    return building_block.dataset(
        CONTRACTS[name],
        sources=SOURCES,
        deps=[dep if isinstance(dep, dg.AssetDep) else dg.AssetDep(dep) for dep in deps],
        partitions_def=partitions_def,
        automation=automation,
    )


def newly_updated() -> dg.AutomationCondition[dg.AssetKey]:
    """Run a partition when any of its inputs was updated and all of them are there."""
    return dg.AutomationCondition.eager().with_label("inputs updated")


def all_hours_there() -> dg.AutomationCondition[dg.AssetKey]:
    """Run a period when all the partitions within it are there, and again when one of them is replaced (Aligned Fan-In)."""
    return dg.AutomationCondition.eager().with_label("all partitions of the period are there")
