"""What a deployment has of the sources: a dataset is computed once each input that it cannot do without has come.

A source has come when a partition of it has landed completely, or when something was published of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Land, Remedy, Run
from blogdata.planning.graph import LANDING, Graph
from blogdata.planning.reach import Landed
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Read


def input_not_published(dataset: str, keys: Sequence[str], above: Sequence[str]) -> PlatformError:
    error = PlatformError(
        what=f"nothing of {', '.join(above)} has been published for {', '.join(keys[:3])}"
        + (f" and {len(keys) - 3} more" if len(keys) > 3 else ""),
        where=dataset,
        next_step=Remedy(f"materialize {above[0]} for them first, or run: ", Run()),
    )
    error.partitions = frozenset(keys)
    return error


def is_there(look: Snapshot, read: Read) -> bool:
    if isinstance(read.reach, Landed):
        return bool(look.landed(read.reach.table, read.reach.grain))
    return bool(look.published(read.dataset))


def landed_tables(graph: Graph, look: Snapshot) -> frozenset[str]:
    reads = [read for contract in graph.contracts.values() for read in contract.reads]
    return frozenset(read.dataset for read in reads if read.dataset.startswith(LANDING) and is_there(look, read))


def awaited(graph: Graph, look: Snapshot, dataset: str) -> PlatformError | None:
    """Return the error that nothing can be computed of a dataset yet; None if something can."""
    published: Iterable[str] = (name for name in (dataset, *graph.upstream([dataset])) if look.published(name))
    missing = graph.awaited(dataset, {*published, *landed_tables(graph, look)})
    if not missing:
        return None
    return PlatformError(
        what=f"nothing can be computed of {dataset} yet: nothing has landed of {', '.join(missing)}",
        where=dataset,
        next_step=Remedy("leave it, for a run computes it once that has landed; what can land: ", Land()),
    )
