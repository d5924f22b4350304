"""What a write is told: where, under which contract, by whom, from what, and what appears with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from lake.commit import Account, Execution
from lake.lake import Lake
from publish.contract import Contract
from publish.run import RunContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Engine(str, Enum):
    """How a write is audited before it is visible."""

    TRANSACTION = "transaction"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where and under which promise rows are written.

    Args:
        lake: The tables' root.
        contract: What is promised about the dataset.
        run: Who writes.
        engine: How the rows are audited.
        probe: Folder through which a test steps a write through its phases; None in real use.
    """

    lake: Lake
    contract: Contract
    run: RunContext
    engine: Engine = Engine.TRANSACTION
    probe: str | None = None


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Rows of another table that appear with those of the fact, for the same partitions (Transactional Writer).

    Args:
        contract: Of the other table; its `appears_with` names the fact.
        frame: All its rows for the partitions; looked at only when there are any.
        above: Measure of the fact: rows of the layer above that the companion accounts for.
        kept: Measure of the fact: how many of these the companion has.
        otherwise: Why it does not have the others.
    """

    contract: Contract
    frame: DataFrame
    above: str
    kept: str
    otherwise: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the rows were computed from.

    Args:
        inputs: Dataset to the table version that was read.
        accounts: Partition to what the layer above has for it.
        expected: Further figures a partition must have, by partition and measure.
        landed: Partition to the fingerprint of the landed files it was read from.
        execution: Which execution it is, for a table that is executed by period.
    """

    inputs: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    landed: Mapping[str, str] = field(default_factory=dict)
    execution: Execution | None = None
