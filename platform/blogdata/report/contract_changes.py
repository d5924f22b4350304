"""When the contract of a dataset changed, and whether its table still differs from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from blogdata.evidence.published_commits import PublishedCommit
from blogdata.lake.lake import Lake
from blogdata.publish.contract import Contract


@dataclass(frozen=True, kw_only=True)
class ContractChange:
    """A commit that was audited against another contract than the commit before it.

    Args:
        dataset: Name as `layer.table`.
        version: Version of the table.
        at: When the commit was recorded.
        before: Fingerprint of the contract before; None: the first one on record.
        after: Fingerprint of the contract since.
        code_version: Version of the code that had the new contract.
    """

    dataset: str
    version: int
    at: datetime
    before: str | None
    after: str
    code_version: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Columns in which a table and its contract differ: the next publication brings them together.

    Args:
        dataset: Name as `layer.table`.
        missing: Columns of the contract that the table does not have.
        surplus: Columns of the table that the contract does not have.
    """

    dataset: str
    missing: Sequence[str]
    surplus: Sequence[str]


def changes(commits: Sequence[PublishedCommit]) -> list[ContractChange]:
    """List the changes of contracts, the newest first; commits recorded without a contract are passed over.

    Args:
        commits: The commits, in the order in which they were recorded.
    """
    last: dict[str, str] = {}
    found = []
    for commit in commits:
        before = last.get(commit.dataset)
        if commit.contract is None or commit.contract == before:
            continue
        last[commit.dataset] = commit.contract
        found.append(
            ContractChange(
                dataset=commit.dataset,
                version=commit.version,
                at=commit.recorded_at,
                before=before,
                after=commit.contract,
                code_version=commit.code_version,
            )
        )
    return found[::-1]


def difference(lake: Lake, contract: Contract) -> Difference | None:
    """Compare a table's columns with its contract; None if they agree or there is no table."""
    parts = lake.parts(contract.dataset)
    if not parts:
        return None
    there = {field.name for part in parts for field in part.table.schema().fields}
    promised = {column.name for column in contract.columns}
    missing, surplus = sorted(promised - there), sorted(there - promised)
    return Difference(dataset=contract.dataset, missing=missing, surplus=surplus) if missing or surplus else None
