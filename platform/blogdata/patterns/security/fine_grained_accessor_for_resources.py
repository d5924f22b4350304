"""Fine-Grained Accessor for Resources: a job reaches the tables that it declares, and no other.

Problem: all jobs run with the rights of one user, who may read, overwrite and remove every table. A wrong name in one
job then destroys another one's table, and what a job really depends on is known to nobody.

How it works: :func:`reach_of` derives what a job may read and write from the inputs that its contract names for the
planner, so there is no second list that grows old. A step of a run holds to it: its lake is a :class:`DeclaredLake`,
which opens no other table, and before rows are committed, the tables in their plan are compared, so that a path which
was put together by hand is found, too (:class:`blogdata.table.target.Target`, `may_read`). The job fails, with its
dataset and with what it reached for, and nothing is published.

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
from blogdata.table.lake import Lake
from blogdata.table.write_faults import NotDeclared

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LANDING = "landing."


@dataclass(frozen=True, kw_only=True)
class JobReach:
    job: str
    reads: frozenset[str]
    landed: frozenset[str]
    writes: frozenset[str]

    def require_read(self, dataset: str) -> None:
        if dataset not in self.reads:
            raise NotDeclared(self.job, dataset)

    def require_landed(self, table: str) -> None:
        if table not in self.landed:
            raise NotDeclared(self.job, f"{_LANDING}{table}")

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
    own = frozenset(contract.dataset for contract in contracts)
    inputs = {read.dataset for contract in contracts for read in contract.reads}
    landed = frozenset(name.removeprefix(_LANDING) for name in inputs if name.startswith(_LANDING))
    tables = frozenset(name for name in inputs if not name.startswith(_LANDING))
    return JobReach(job=contracts[0].dataset, reads=tables | own, landed=landed, writes=own)
