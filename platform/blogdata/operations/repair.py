"""The job `repair`: finds files that a failing disk has damaged, and lets the next run recompute their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from blogdata.errors import refuse_unknown
from blogdata.evidence.damage import Damage, DamageKind, inspect
from blogdata.evidence.events import EVENTS, EventLog
from blogdata.evidence.own_tables import OWN, inspect_own, mend_own
from blogdata.evidence.repair import mend
from blogdata.lake.lake import Lake
from blogdata.lake.store_faults import LogDamaged
from blogdata.operations.job import operation
from blogdata.orchestration.metadata import table
from blogdata.publish.contract import Contract
from quality.contracts import CONTRACTS, EVERY

Damaged = Mapping[str, Sequence[Damage]]
"""Dataset to its damages; of datasets with any."""


class RepairConfig(dg.Config):
    """What is looked at, and mended."""

    dataset: str = Field("", description="Only this dataset, like silver.visits; empty: all")
    only_plan: bool = Field(False, description="Only show what is damaged, and mend nothing")


def look(lake: Lake, dataset: str | None = None) -> Damaged:
    """Find what is damaged of a dataset; None: of all, and of the platform's own tables first.

    Raises:
        ConfigurationError: There is no such dataset.
    """
    refuse_unknown([dataset] if dataset else [], CONTRACTS, where="repair")
    # Together with the event log: it tells which versions the others must have.
    own = {} if dataset else dict(inspect_own(lake, EVERY))
    known = EventLog(lake) if EVENTS not in own else None
    found = {contract.dataset: _inspect(lake, known, contract) for contract in _chosen(dataset)}
    return {name: damages for name, damages in {**own, **found}.items() if damages}


def put_aside(lake: Lake, damaged: Damaged, dataset: str | None, say: Callable[[str], None]) -> Sequence[LogDamaged]:
    """Put damaged files aside, so that the next run computes what they told.

    Args:
        damaged: What :func:`look` has found.
        dataset: As in :func:`look`.

    Returns:
        The datasets whose logs cannot be repaired.
    """
    own = [name for name in damaged if name in OWN]
    _mend_own(lake, own, say)
    events = EventLog(lake)
    beyond: list[LogDamaged] = []
    # With the event log mended, more may be found than before.
    for name in [contract.dataset for contract in _chosen(dataset)] if EVENTS in own else damaged.keys() - {*own}:
        try:
            _mend(lake, events, CONTRACTS[name], say)
        except LogDamaged as error:
            # Repair the other datasets all the same.
            beyond.append(error)
    if own:
        # The publications of a dataset whose log was damaged, too.
        _mend_own(lake, inspect_own(lake, EVERY), say)
    return beyond


def _chosen(dataset: str | None) -> Sequence[Contract]:
    return [CONTRACTS[dataset]] if dataset else list(CONTRACTS.values())


def _inspect(lake: Lake, events: EventLog | None, contract: Contract) -> Sequence[Damage]:
    recorded = -1 if events is None else events.recorded(contract.dataset)
    return inspect(lake, contract.dataset, contract.partition_column, recorded=recorded)


def _mend_own(lake: Lake, damaged: Iterable[str], say: Callable[[str], None]) -> None:
    for name in damaged:
        say(f"{name}: {mend_own(lake, name, EVERY)}")


def _mend(lake: Lake, events: EventLog, contract: Contract, say: Callable[[str], None]) -> None:
    # A repaired log may list data files that are damaged.
    while damages := _inspect(lake, events, contract):
        for done in mend(lake, events, contract, damages):
            say(f"{contract.dataset}: {done}")
        if all(one.partition is not None or one.kind is DamageKind.CHECKSUMS for one in damages):
            return


def _do(context: dg.OpExecutionContext, config: RepairConfig) -> Mapping[str, Any]:
    lake: Lake = context.resources.lake.lake
    damaged = look(lake, config.dataset or None)
    rows = [
        {"dataset": name, "partition": one.partition, "kind": one.kind.value, "file": str(one.file), "why": one.problem}
        for name, damages in damaged.items()
        for one in damages
    ]
    beyond = [] if config.only_plan else put_aside(lake, damaged, config.dataset or None, context.log.info)
    for error in beyond[1:]:
        context.log.error(str(error))
    if beyond:
        raise beyond[0]
    return {"damaged": len(rows), "mended": bool(rows) and not config.only_plan, **table("files", rows)}


job = operation(
    "repair",
    RepairConfig,
    _do,
    description="Look at the files of every table; what is damaged is put aside, and computed again by the next run",
)
