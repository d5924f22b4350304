"""The inputs of a write: its target (lake, contract, run), its provenance, and its companions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from blogdata.lake.commit import Account, Added, Execution
from blogdata.lake.lake import Lake
from blogdata.publish.audit import FileFigures
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Audit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The run that produces a commit.

    Args:
        trigger: What started the run: `manual`, or the name of a sensor, schedule, backfill or event from outside.
    """

    run_id: str
    job: str
    code_version: str
    trigger: str = "manual"
    attempt: int = 1
    event: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Target:
    """The table, contract and run of a write.

    Args:
        probe: Folder through which a test steps a write through its phases; None in real use.
        may_read: Datasets of the lake that the rows may be computed from; None: any.
    """

    lake: Lake
    contract: Contract
    run: RunContext
    probe: str | None = None
    lifted: frozenset[str] = frozenset()
    audits: tuple[Audit, ...] = ()
    may_read: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Rows of a companion table, published with those of the fact for the same partitions (Transactional Writer).

    Args:
        frame: All its rows for the partitions; evaluated only if there are any.
    """

    contract: Contract
    frame: DataFrame
    counted_measure: str
    kept_measure: str
    dropped_reason: str


@dataclass(frozen=True, kw_only=True)
class Additions:
    """The partitions of a batch to which rows are only added; all others are replaced."""

    at: int = -1
    of: Mapping[str, Added] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The inputs from which the rows were computed, and the figures they must match.

    Args:
        files: Partition to landed file to its lines and bytes, which its rows must have; empty if no landed files are
            read.
        refreshed: How much of a materialized view was computed, and why, in words; empty for other datasets.
    """

    inputs: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, FileFigures]] = field(default_factory=dict)
    landed: Mapping[str, str] = field(default_factory=dict)
    execution: Execution | None = None
    judged_by: Mapping[str, str] = field(default_factory=dict)
    additions: Additions = field(default_factory=Additions)
    refreshed: str = ""
