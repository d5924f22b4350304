"""Every way to write a table, described so that each law can be stated once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Account, Commit
from blogdata.patterns.idempotency import fast_metadata_cleaner, proxy
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.table.publish import publish
from blogdata.table.target import AppendBatch, Provenance, Target
from toy import CONTRACT, HOURS, WHOLE, clicks, merged, target

Row = tuple[str, int, int, str]
"""hour, click, stands_for, page"""
State = frozenset[Row]
Before = Callable[[], State]
"""Reads what is in the table, for a writer that has to know it."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some clicks of some hours, as a run would compute them."""

    first: int
    rows: int
    hours: tuple[str, ...] = HOURS

    def frame(self, spark: Any) -> Any:
        frame = clicks(spark, self.rows, self.first)
        return frame.where(frame["hour"].isin(*self.hours))

    def model(self) -> State:
        """Compute the rows in plain Python."""
        numbers = range(self.first, self.first + self.rows)
        rows = ((HOURS[click % 2], click, 1 + click % 3, f"/page{click % 5}") for click in numbers)
        return frozenset(row for row in rows if row[0] in self.hours)

    def accounts(self, keys: Sequence[str]) -> dict[str, Account]:
        return {key: Account(rows_in=sum(row[2] for row in self.model() if key in ("", row[0]))) for key in keys}


@dataclass(frozen=True)
class Writer:
    """One way to write; `after` computes the table's rows after a batch in plain Python."""

    name: str
    contract: Contract
    write: Callable[[Any, Target, Batch, Before], Commit]
    after: Callable[[State, Batch], State]
    commutes: bool = False
    """Batches of different partitions may come in any order; not tested for writers that only add."""
    published_by: Literal["commit", "swap"] = "commit"
    """What makes a batch visible: the commit of the write itself, or a swap after it."""
    adds: bool = False
    """It only adds rows: concurrent batches do not conflict, and a commit accounts for the added rows."""

    def target(self, root: Path, run: str, probe: Path | None = None) -> Target:
        more = {} if probe is None else {"probe": str(probe)}
        return target(root, run, self.contract, **more)


def _partitions(frame: Any, aim: Target, batch: Batch, before: Before) -> Commit:
    return overwrite_partitions(frame, aim, batch.hours, Provenance(accounts=batch.accounts(batch.hours)))


def _table(frame: Any, aim: Target, batch: Batch, before: Before) -> Commit:
    return overwrite_table(frame, aim, Provenance(accounts=batch.accounts([""])))


def _merged(state: State, batch: Batch) -> State:
    keys = {row[1] for row in batch.model()}
    return frozenset(row for row in state if row[1] not in keys) | batch.model()


def _merge(frame: Any, aim: Target, batch: Batch, before: Before) -> Commit:
    # A merge accounts for the whole table afterwards.
    account = Account(rows_in=sum(row[2] for row in _merged(before(), batch)))
    return merged(frame.selectExpr("*", "false AS is_deleted"), aim, Provenance(accounts={"": account}))


def _copy(frame: Any, aim: Target, batch: Batch, before: Before) -> Commit:
    return proxy.load(frame, aim, Provenance(accounts=batch.accounts([""])), name="v2026-01-05")


def _periods(frame: Any, aim: Target, batch: Batch, before: Before) -> Commit:
    provenance = Provenance(accounts=batch.accounts(batch.hours))
    return fast_metadata_cleaner.replace_periods(frame, aim, batch.hours, provenance)


def _appended(state: State, batch: Batch) -> State:
    """Appended rows are added to existing ones, so each batch has clicks that no other batch has."""
    return state | {(row[0], row[1] + 1000 * batch.first, row[2], row[3]) for row in batch.model()}


def _append(frame: Any, aim: Target, batch: Batch, before: Before) -> Commit:
    # Each batch is the first one of a stream of its own, so that batches may come in any order.
    once = AppendBatch(stream=f"{batch.rows} from {batch.first} in {'+'.join(batch.hours)}", batch=0)
    rows = frame.withColumn("click", frame["click"] + 1000 * batch.first)
    provenance = Provenance(accounts=batch.accounts(batch.hours))
    return publish(rows, aim, change=once, partitions=batch.hours, provenance=provenance)


def _replaced(state: State, batch: Batch) -> State:
    return frozenset(row for row in state if row[0] not in batch.hours) | batch.model()


def _whole(state: State, batch: Batch) -> State:
    return batch.model()


WRITERS = (
    Writer("overwrite_partitions", CONTRACT, _partitions, _replaced, commutes=True),
    Writer("overwrite_table", WHOLE, _table, _whole),
    Writer("merge", replace(WHOLE, dataset="silver.merged"), _merge, _merged, commutes=True),
    Writer("append", replace(CONTRACT, dataset="silver.appended"), _append, _appended, adds=True),
)
_PERIODS, _COPIES = replace(CONTRACT, dataset="silver.periods"), replace(WHOLE, dataset="silver.copies")
SWAPPERS = (
    Writer("replace_periods", _PERIODS, _periods, _replaced, commutes=True, published_by="swap"),
    Writer("load_copy", _COPIES, _copy, _whole, published_by="swap"),
)
"""Writers that fill tables nobody sees, by the ways above, and then show them."""
