"""Fine-Grained Accessor for Resources: a job reaches the tables that it declares, and no other.

Problem: all jobs run with the rights of one user, who may read, overwrite and remove every table. A wrong name in one
job then destroys another one's table, and what a job really depends on is known to nobody.

How it works: a contract names the inputs of its dataset, and the planner already follows them. :func:`reach_of` derives
from the same declaration what a job may read and write, so there is no second list that grows old. A step of a run
holds to it: its lake is a :class:`DeclaredLake`, which opens no other table, and before rows are committed, the tables
in their plan are compared, so that a path which was put together by hand is found, too
(:class:`blogdata.publish.target.Target`, `may_read`). The job fails, with its dataset and with what it reached for, and
nothing is published.

The same declaration is written for those who can enforce it against a process, too (:func:`s3_policy`): the policy of
an identity for each job, by the prefixes of its tables. No action, resource or prefix of it ends in a wildcard over
names: a table that somebody adds tomorrow as `silver.users_salaries` is not in the policy for `silver.users`.

The trap: rights by name patterns, `silver.*`, because the list of tables is long. Every new table is then readable
before anybody has thought about it.

When not to use it: as a wall against the author of a job. In one process with the user's rights, Python code can open
any file; the step stops a mistake, and only the policies of a store or the permissions of another user stop a person.

Source: Data Engineering Design Patterns, ch. 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blogdata.evidence.events import EVENTS
from blogdata.lake import members
from blogdata.lake.lake import Lake
from blogdata.publish.contract import Contract
from blogdata.publish.write_faults import NotDeclared

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LANDING = "landing."
_VERSION = "2012-10-17"
"""The version of the language of policies, a date that never changes."""


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


def s3_policy(reach: JobReach, *, lake: str, landing: str) -> Mapping[str, Any]:
    """Write a job's reach as the policy of its identity in an object store.

    Returns:
        The policy, to be written as JSON. It may remove no object: what is no longer needed is removed by maintenance,
        under an identity of its own.
    """
    writes = [*sorted(reach.writes), EVENTS]
    reads = sorted({*reach.reads, *writes})
    read = [*_folders(lake, reads), *(f"{landing}/{table}/" for table in sorted(reach.landed))]
    return {
        "Version": _VERSION,
        "Statement": [
            _objects("Read", ["s3:GetObject"], read),
            *(_listing(number, folder) for number, folder in enumerate(read)),
            _objects("Write", ["s3:AbortMultipartUpload", "s3:PutObject"], _folders(lake, writes)),
        ],
    }


def _folders(lake: str, datasets: Iterable[str]) -> list[str]:
    """Return the folders of datasets; the tables of members are in a folder of their own beside that of the pointer."""
    found = []
    for dataset in datasets:
        layer, name = dataset.split(".", 1)
        found += [f"{lake}/{layer}/{name}/", f"{lake}/{layer}/_{name}/"]
    return found


def _objects(name: str, actions: Sequence[str], folders: Iterable[str]) -> Mapping[str, Any]:
    return {
        "Sid": name,
        "Effect": "Allow",
        "Action": list(actions),
        # Everything in one table's folder; the slash before the star is what keeps tables with longer names out.
        "Resource": [f"arn:aws:s3:::{folder}*" for folder in folders],
    }


def _listing(number: int, folder: str) -> Mapping[str, Any]:
    bucket, _, prefix = folder.partition("/")
    return {
        "Sid": f"List{number}",
        "Effect": "Allow",
        "Action": ["s3:ListBucket"],
        "Resource": [f"arn:aws:s3:::{bucket}"],
        "Condition": {"StringLike": {"s3:prefix": [f"{prefix}*"]}},
    }
