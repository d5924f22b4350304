"""Fine-Grained Accessor for Resources: a job reaches the tables that it declares, and no other.

Problem: all jobs run with the rights of one user, who may read, overwrite and remove every table. A wrong name in one
job destroys another one's table, and nobody knows what a job really depends on.
How it works: :func:`reach_of` derives what a job may read and write from the inputs that its contract names for the
planner, so there is no second list. A step's lake is a :class:`DeclaredLake`, which opens no other table, and before
rows are committed, the tables in their plan are compared, so that a path put together by hand is found, too
(:class:`blogdata.table.target.Target`, `may_read`). The error names the job and what it reached for, and nothing is
published.
The trap: rights by name patterns, `silver.*`, because the list of tables is long. Every new table is then readable
before anybody has thought about it.
When not to use it: as a wall against the author of a job. In one process with the user's rights, Python code can open
any file; the step stops a mistake, and only the permissions of another user stop a person.
Source: Data Engineering Design Patterns, ch. 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.contract.contract import Contract
from blogdata.table import members
from blogdata.table.faults import NotDeclared
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, kw_only=True)
class JobReach:
    job: str
    reads: frozenset[str]
    """Datasets and tables of the landing zone, such as `landing.visits`."""
    writes: frozenset[str]

    def require_read(self, dataset: str) -> None:
        if dataset not in self.reads:
            raise NotDeclared(self.job, dataset)

    def require_write(self, dataset: str) -> None:
        if dataset not in self.writes:
            raise NotDeclared(self.job, dataset, writes=True)


@dataclass(frozen=True, kw_only=True)
class DeclaredLake(Lake):
    reach: JobReach

    def caught_up(self, dataset: str) -> DeltaTable | None:
        self.reach.require_read(members.dataset_of(dataset))
        return super().caught_up(dataset)

    def at(self, table: str, version: int) -> DeltaTable:
        self.reach.require_read(members.dataset_of(table))
        return super().at(table, version)


def reach_of(contracts: Sequence[Contract]) -> JobReach:
    writes = frozenset(contract.dataset for contract in contracts)
    reads = frozenset(read.dataset for contract in contracts for read in contract.reads)
    return JobReach(job=contracts[0].dataset, reads=reads | writes, writes=writes)
