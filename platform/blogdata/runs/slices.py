"""Adds the rows of new slices to partitions that are published, where replacing them whole gives the same rows.

Eleven late rows in eleven event hours are eleven rows to write, not eleven hours. A partition is a pure function of its
inputs all the same: rows are only added where nothing else can differ from what computing it whole would give. It is
computed whole if it was asked for by name or was never published, if any other input of it changed, if a slice that it
has read was published again, if other code, another contract or another key published it, if anybody else has changed
the table since, its rows do not add up in the ledger or a file of it is damaged, or if it has been added to as often as
its contract allows. Duplicates of published rows are for the caller to rule out (:func:`without_repeated`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from blogdata.contract.contract import Contract, Edge, Sliced
from blogdata.contract.migrations import carried
from blogdata.contract.publication import Added, Entry, keeps_rows, parse, parse_expiry
from blogdata.contract.writes import ByPeriod, Replace, Slices
from blogdata.ledger import ledger
from blogdata.patterns.idempotency import fast_metadata_cleaner
from blogdata.planning.snapshot import Snapshot
from blogdata.runs.step import Step
from blogdata.table.companions import version_with
from blogdata.table.faults import LogDamaged
from blogdata.table.target import Additions

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import Column, DataFrame

_WHOLE_FROM = 3
"""The try from which partitions are replaced: an addition is refused if anything of the table was written meanwhile."""
_LOOK_BACK = 1000
"""Newest commits of the table that are looked at; a partition that was published before them is computed whole."""


def additions(step: Step, companions: Sequence[Contract] = ()) -> Additions:
    """Find the partitions of a step to which rows need only be added.

    All inputs are pinned before anything is looked up: what is published later is no part of what the step reads.
    """
    contract, slices = step.contract, slices_of(step.contract)
    if step.run.attempt >= _WHOLE_FROM:
        return Additions()
    if slices is None or not step.stale or not step.exists(contract.dataset):
        return Additions()
    inputs = [read.dataset for read in contract.reads if read.dataset != contract.dataset]
    pinned = {dataset: step.pin(dataset) for dataset in inputs if step.exists(dataset)}
    table = step.lake.caught_up(contract.dataset)
    assert table is not None
    look = Snapshot(step.landing_zone, step.events)
    published = look.published(contract.dataset)
    by = step.run.code_version, carried(contract, table).fingerprint, step.judged_by
    continues = {key for key, of in published.items() if (of.code_version, of.contract, of.judged_by) == by}
    often = {key for key, of in published.items() if of.added and of.added.times >= slices.most}
    keys = step.stale & continues
    if keys and isinstance(contract.write, ByPeriod):
        keys &= fast_metadata_cleaner.extensible(step.lake, contract.dataset, keys).keys()
    if not keys or any(entry.version > pinned[slices.of] for entry in look.published(slices.of).values()):
        # Nothing to add to; or published since it was pinned: what came and what is read are not of one state.
        return Additions()
    for read in contract.reads:
        if read.dataset != slices.of:
            keys -= read.reach.behind(look, Edge(above=read.dataset, below=contract)).keys()
    (reach,) = [read.reach for read in contract.reads if read.dataset == slices.of]
    assert isinstance(reach, Sliced)
    came = reach.came(look, Edge(above=slices.of, below=contract), keys, until=pinned[slices.of])
    intact = set(came)
    for published_together in (contract, *companions):
        intact &= _intact(step, published_together, intact)
    added = {key: _added(published[key], came[key]) for key in sorted(intact)}
    return Additions(at=table.version(), of=added).rewriting(often)


def without_repeated(step: Step, additions: Additions, rows: DataFrame) -> Additions:
    """Write the partitions again of which a new row has the identity of a published one, which then stands for both."""
    dataset, column = step.contract.dataset, step.contract.partition_column
    published = step.lake.read(step.spark, dataset, additions.at, partitions=additions.of)
    repeated = rows.join(published, list(step.contract.identity), "left_semi").select(str(column)).distinct()
    return additions.rewriting({row[0] for row in repeated.collect()})


def rows_to_read(additions: Additions, contract: Contract, keys: Sequence[str]) -> Column:
    """Return the condition on rows of the input: all of partitions that are replaced, new slices of the others."""
    slices, whole = slices_of(contract), [key for key in keys if key not in additions.of]
    pairs = [f"{key} {name}" for key in keys if key in additions.of for name in additions.of[key].slices]
    return rows_of(whole, pairs, str(contract.partition_column), slices.column if slices else "")


def rows_of(
    whole: Collection[str], pairs: Collection[str], column: str = "event_hour", slices: str = "arrival_hour"
) -> Column:
    """Return the condition on the rows of whole partitions, and of slices of others, each as `partition slice`."""
    rows = F.col(column).isin(*whole) if whole else F.lit(False)
    if not pairs:
        return rows
    # The slices apart, too, so that the other files are skipped.
    came = F.col(slices).isin(*{pair.split()[1] for pair in pairs})
    return rows | (came & F.concat_ws(" ", column, slices).isin(*pairs))


def with_published(step: Step, additions: Additions, companion: Contract, rows: DataFrame) -> DataFrame:
    """Add the rows that a companion has of the partitions that are added to: it is replaced in all partitions."""
    if not additions.of:
        return rows
    names = [f"`{column.name}`" for column in companion.columns]
    version = version_with(step.lake, companion.dataset, additions.at)
    published = step.lake.read(step.spark, companion.dataset, version, partitions=additions.of)
    return rows.select(*names).unionByName(published.select(*names))


def slices_of(contract: Contract) -> Slices | None:
    """Return the slices in which a dataset may be written; None if its partitions are always replaced."""
    return contract.write.slices if isinstance(contract.write, Replace | ByPeriod) else None


def _intact(step: Step, contract: Contract, keys: Collection[str]) -> set[str]:
    """Return the partitions whose rows are there as they were published: by the table's log, counts and checksums."""
    published = step.events.publications(contract.dataset, keys) if keys else {}
    table = step.lake.caught_up(contract.dataset) if published else None
    if table is None:
        return set()
    since = _only_published_since(step, table, min(entry.version for entry in published.values()))
    # A damaged file is replaced, and not kept.
    lines = ledger.audit(step.lake, step.events, contract, published, read=True)
    return {
        line.entry.partition for line in lines if line.balanced and published[line.entry.partition].version >= since
    }


def _only_published_since(step: Step, table: DeltaTable, oldest: int) -> int:
    """Return the version, `oldest` or later, since which all commits of the table are publications or change no row."""
    since = table.version()
    # A damaged commit may be anything; nobody needs it while a later checkpoint is there.
    with suppress(LogDamaged):
        for version, commit in step.lake.commits(table, max(oldest, since - _LOOK_BACK)):
            metadata = commit.get("userMetadata")
            # Partitions that have expired leave those that rows are added to as they are.
            if version != since or not (keeps_rows(commit) or parse(metadata) or parse_expiry(metadata)):
                break
            since = version - 1
    return since


def _added(before: Entry, slices: Iterable[str]) -> Added:
    times = before.added.times + 1 if before.added else 1
    return Added(after=before.changed, rows_before=before.rows_out, slices=tuple(slices), times=times)
