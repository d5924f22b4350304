"""What is the same for all of the blog's datasets, laid over them in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg
from dagster._core.definitions.declarative_automation.operators import AndAutomationCondition

import assets
import patterns
import quality
from orchestration import dataset as building_block
from orchestration.step import Step
from patterns.core.commit import Commit
from patterns.idempotency.transactional_writer import Together
from quality.contracts import CONTRACTS

SOURCES = tuple(Path(package.__file__ or "").parent for package in (assets, patterns, quality))


Dependency = dg.AssetDep | dg.AssetsDefinition | dg.AssetSpec | str
"""What a dataset reads; by its name, when it is published together with others."""


def blog_dataset(
    name: str,
    *,
    deps: Sequence[Dependency] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    automation: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> Callable[[Callable[[Step], Commit]], dg.AssetsDefinition]:
    """Declare one of the blog's datasets by the name of its contract."""
    return building_block.dataset(
        CONTRACTS[name],
        sources=SOURCES,
        deps=[_dep(dep) for dep in deps],
        partitions_def=partitions_def,
        automation=automation,
    )


def blog_datasets_together(
    *names: str,
    deps: Sequence[Dependency],
    partitions_def: dg.PartitionsDefinition[str],
    automation: dg.AutomationCondition[dg.AssetKey],
) -> Callable[[Callable[[Step], Together]], dg.AssetsDefinition]:
    """Declare datasets of the blog that appear together, the main one first, by the names of their contracts."""
    return building_block.datasets_together(
        [CONTRACTS[name] for name in names],
        sources=SOURCES,
        deps=[_dep(dep) for dep in deps],
        partitions_def=partitions_def,
        automation=automation,
    )


def _dep(dep: Dependency) -> dg.AssetDep:
    if isinstance(dep, str):
        return dg.AssetDep(building_block.key_of(dep))
    return dep if isinstance(dep, dg.AssetDep) else dg.AssetDep(dep)


def newly_updated(*, ignoring: Sequence[str] = ()) -> dg.AutomationCondition[dg.AssetKey]:
    """Run a partition, however old, when any of its inputs was updated and all of them are there.

    Args:
        ignoring: Datasets whose update changes no row of this one, and which may be absent.
    """
    condition = _eager()
    if ignoring:
        condition = condition.ignore(dg.AssetSelection.assets(*[building_block.key_of(name) for name in ignoring]))
    return condition.with_label("inputs updated")


def delivered() -> dg.AutomationCondition[dg.AssetKey]:
    """Run a table that is written whole when any partition of its input was updated; others may never have come."""
    return (
        dg.AutomationCondition.any_deps_updated().since_last_handled()
        & ~dg.AutomationCondition.any_deps_in_progress()
        & ~dg.AutomationCondition.in_progress()
    ).with_label("a delivery came")


def all_hours_there() -> dg.AutomationCondition[dg.AssetKey]:
    """Run a period when all partitions within it are there, and again when one is replaced (Aligned Fan-In)."""
    return _eager().with_label("all partitions of the period are there")


def once_all_hours_there() -> dg.AutomationCondition[dg.AssetKey]:
    """Run a period when all partitions within it are there, once: its late rows are a schedule's matter."""
    condition = _eager() & dg.AutomationCondition.missing()
    return condition.with_label("all partitions of the period are there for the first time")


def _eager() -> AndAutomationCondition[dg.AssetKey]:
    # Dagster's own looks at the newest partition only: the running period, which is never complete, and nothing late.
    eager: AndAutomationCondition[dg.AssetKey] = dg.AutomationCondition.eager()
    return eager.without(dg.AutomationCondition.in_latest_time_window())
