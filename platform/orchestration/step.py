"""What the computation of a dataset sees of its run: its partitions, its inputs, and the one way to write."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from errors import PlatformError
from evidence import executions
from evidence.events import EventLog
from lake.commit import WHOLE_TABLE, Account, Commit
from lake.lake import DatasetMissing, Lake
from patterns.idempotency import fast_metadata_cleaner, merger, proxy, stateful_merger
from patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from patterns.idempotency.transactional_writer import overwrite_together
from patterns.ingestion.readiness_marker import LandingZone
from patterns.quality import constraints_enforcer
from publish.contract import Contract
from publish.run import RunContext
from publish.target import Companion, Engine, Provenance, Target
from publish.writes import ByPeriod, Copy
from services import spark_probe

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class LakeAccess(Protocol):
    """What a step needs of the lake resource."""

    @property
    def lake(self) -> Lake:
        """The tables' root."""

    @property
    def events(self) -> EventLog:
        """The event log."""

    @property
    def landing_path(self) -> Path:
        """The landing zone."""

    @property
    def landing_zone(self) -> LandingZone:
        """The landing zone, and what makes a partition of it complete."""

    @property
    def checkpoints_path(self) -> Path:
        """The streams' checkpoints."""

    @property
    def engine(self) -> Engine:
        """How writes are audited."""

    @property
    def probe(self) -> str | None:
        """Folder through which a test steps writes; None in real use."""

    def batches(self, dataset: str, version: int, column: str, key: str) -> Iterator[pa.RecordBatch]:
        """Read one partition of a dataset without a JVM, batch by batch."""


class Secrets(Protocol):
    """What a step needs of the secrets resource."""

    def read(self, name: str) -> str:
        """Read a secret by its name."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A full delivery, of a dataset into which deliveries are merged.

    Args:
        rows: From the table as it is before to all rows there are, with the contract's columns.
        account: What the layer above has of it.
    """

    rows: Callable[[DataFrame], DataFrame]
    account: Account


@dataclass(frozen=True, kw_only=True)
class Source:
    """What the layer above has of the rows that a step publishes.

    Args:
        accounts: Partition to its rows there, and those that are left out on purpose.
        expected: Further figures a partition must have, by partition and measure.
        landed: Partition to the fingerprint of the landed files.
        copy: Name of the immutable copy, from attributes that cannot change, of a dataset that keeps copies.
    """

    accounts: Mapping[str, Account] = field(default_factory=dict)
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    landed: Mapping[str, str] = field(default_factory=dict)
    copy: str | None = None


class Step:
    """One computation of one dataset for some partitions.

    Inputs are read at one version each, remembered, and recorded in the commit; what the layer above has for the
    partitions is taken from its own accounts at that version. `accepted` names the guards a person has lifted for
    this run.
    """

    def __init__(
        self,
        *,
        contract: Contract,
        partitions: Sequence[str],
        spark: SparkSession,
        access: LakeAccess,
        secrets: Secrets,
        run: RunContext,
        accepted: Collection[str] = (),
    ) -> None:
        self.contract = contract
        self.partitions = tuple(sorted(partitions))
        self.spark = spark
        self.lake = access.lake
        self.events = access.events
        self.landing = access.landing_path
        self.run = run
        self.secrets = secrets
        self.accepted = frozenset(accepted)
        self.started = time.monotonic()
        self.inputs: dict[str, int] = {}
        self.engine = access.engine
        self._access = access

    @property
    def landing_zone(self) -> LandingZone:
        """The landing zone, and what makes a partition of it complete."""
        return self._access.landing_zone

    def read(self, dataset: str) -> DataFrame:
        """Read a dataset at the version this step has chosen for it: the newest one at its first look.

        Raises:
            DatasetMissing: The dataset has never been published.
        """
        return self.lake.read(self.spark, dataset, self.pin(dataset))

    def pin(self, dataset: str) -> int:
        """Choose the version of an input, once.

        Raises:
            DatasetMissing: The dataset has never been published.
        """
        if dataset not in self.inputs:
            version = self.lake.version(dataset)
            if version is None:
                raise DatasetMissing(
                    what=f"{dataset} has no table yet",
                    where=f"input of {self.contract.dataset}",
                    next_step=f"materialize {dataset} first, or run: blogdata run",
                )
            self.inputs[dataset] = version
        return self.inputs[dataset]

    def exists(self, dataset: str) -> bool:
        """Tell whether a dataset has ever been published."""
        return dataset in self.inputs or self.lake.version(dataset) is not None

    def publish(
        self,
        rows: DataFrame | Delivery | Callable[[str], Delivery],
        source: Source | None = None,
        *,
        companions: Sequence[Companion] = (),
    ) -> Mapping[str, Commit]:
        """Publish what the step computes, audited and accounted for, as the contract's `write` says.

        Args:
            rows: All rows of the step's partitions, or of the table; the delivery, of a dataset that is merged; that of
                each period, of one that is written in order.
            source: What the layer above has of it, where no delivery says so.
            companions: What appears with it (Transactional Writer).

        Returns:
            Dataset to its commit; of a dataset that is written in order the last one, with the ledger's lines of all,
            those of the executions that had to follow included.

        Raises:
            ReplayTooLong: More later executions would follow than the contract allows; nothing was touched.
            FrozenPeriod: A partition is frozen, and nobody has lifted that guard.
            PlatformError: As `publish` of Audit-Write-Audit-Publish, and of the pattern that writes.
        """
        if isinstance(rows, Delivery):
            return self._of_one(self._merge_delivery(rows))
        given = source or Source()
        provenance = Provenance(
            inputs=self.inputs, accounts=given.accounts, expected=given.expected, landed=given.landed
        )
        if callable(rows):
            return self._of_one(self._merge_in_order(rows))
        write = self.contract.write
        if isinstance(write, Copy):
            assert given.copy is not None
            return self._of_one(proxy.load(rows, self._target(), provenance, name=given.copy))
        if isinstance(write, ByPeriod):
            thaw = fast_metadata_cleaner.FROZEN in self.accepted
            return self._of_one(
                fast_metadata_cleaner.replace_periods(rows, self._target(), self.partitions, provenance, thaw=thaw)
            )
        if companions:
            return overwrite_together(rows, self._target(), self.partitions, provenance, companions=companions).commits
        if self.contract.partitioning is None:
            return self._of_one(overwrite_table(rows, self._target(), provenance))
        return self._of_one(overwrite_partitions(rows, self._target(), self.partitions, provenance))

    def _of_one(self, commit: Commit) -> Mapping[str, Commit]:
        return {self.contract.dataset: commit}

    def _merge_delivery(self, delivery: Delivery) -> Commit:
        contract, target = self.contract, self._target()
        version = self.lake.version(contract.dataset)
        if version is None or WHOLE_TABLE not in self.events.publications(contract.dataset):
            # Whatever is there by then is replaced: a delivery that came first at the same time, or what was taken
            # back, of which files may not be readable.
            rows = delivery.rows(self.spark.createDataFrame([], contract.ddl))
            return overwrite_table(rows, target, self._provenance_of(delivery))
        # Before it is read: an older table takes new columns up, which are null in the rows that are there.
        constraints_enforcer.enforce(self.spark, self.lake, contract, engine=self.engine is Engine.TRANSACTION)
        version = self.lake.version(contract.dataset)
        assert version is not None
        rows = delivery.rows(self.lake.read(self.spark, contract.dataset, version))
        return merger.merge_all(rows, target, self._provenance_of(delivery), at=version)

    def _provenance_of(self, delivery: Delivery) -> Provenance:
        return Provenance(inputs=self.inputs, accounts={WHOLE_TABLE: delivery.account})

    def _merge_in_order(self, delivery: Callable[[str], Delivery]) -> Commit:
        """Merge the step's periods, one after the other, and what was taken from the table before them first."""
        target, left, commits = self._target(), set(self.partitions), list[Commit]()
        while todo := self._due(left):
            period = todo[0]
            commits.append(self._execute(target, period, delivery(period)))
            left.discard(period)
        entries = {period: entry for commit in commits for period, entry in commit.entries.items()}
        return replace(commits[-1], entries=entries, repeated=all(commit.repeated for commit in commits))

    def _due(self, asked: Collection[str]) -> list[str]:
        marks = self.events.executions(self.contract.dataset)
        executed = {mark.partition for mark in marks if mark.restored is None}
        # What was taken back does not follow from what is asked for: the table cannot be read without it.
        wanted = {*asked, *(executed - self.events.publications(self.contract.dataset).keys())}
        return executions.due(self.contract, marks, wanted)

    def _execute(self, target: Target, period: str, delivery: Delivery) -> Commit:
        return stateful_merger.execute(
            self.spark,
            target,
            self.events,
            period,
            lambda before: merger.removed(delivery.rows(before), before, self.contract),
            self._provenance_of(delivery),
            lost=spark_probe.is_lost,
        )

    def _target(self) -> Target:
        return Target(
            lake=self.lake,
            contract=self.contract,
            run=self.run,
            engine=self.engine,
            probe=self._access.probe,
        )


class InputChanged(PlatformError):
    """An input was published again between the choice of its version and the look at its accounts."""

    transient = True
