"""What the computation of a dataset sees of its run: its partitions, its inputs, and the one way to write."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from patterns.core.commit import WHOLE_TABLE, Account, Commit
from patterns.core.contract import Contract
from patterns.core.errors import PlatformError
from patterns.core.events import EventLog
from patterns.core.lake import DatasetMissing, Lake
from patterns.core.run import RunContext
from patterns.idempotency import fast_metadata_cleaner, proxy, stateful_merger
from patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from patterns.idempotency.merger import merge, removed
from patterns.idempotency.transactional_writer import Together, overwrite_together
from patterns.quality.audit_write_audit_publish import Companion, Engine, Provenance, Target
from services import spark_probe

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


FOLLOWED = "followed"
"""What a run accepts whose plan has further runs for the executions that must follow its own."""


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
    def checkpoints_path(self) -> Path:
        """The streams' checkpoints."""

    @property
    def engine(self) -> Engine:
        """How writes are audited."""

    @property
    def probe(self) -> str | None:
        """Folder through which a test steps writes; None in real use."""


class Secrets(Protocol):
    """What a step needs of the secrets resource."""

    def read(self, name: str) -> str:
        """Read a secret by its name."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A full delivery of one period.

    Args:
        rows: From the table as it is before to all rows there are, with the contract's columns.
        account: What the layer above has of it.
    """

    rows: Callable[[DataFrame], DataFrame]
    account: Account


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

    def overwrite(
        self,
        frame: DataFrame,
        *,
        accounts: Mapping[str, Account] | None = None,
        expected: Mapping[str, Mapping[str, int]] | None = None,
        landed: Mapping[str, str] | None = None,
    ) -> Commit:
        """Publish the step's partitions (or the whole table), audited and accounted for.

        Args:
            frame: The rows.
            accounts: Partition to what the layer above has for it.
            expected: Further figures a partition must have.
            landed: Partition to the fingerprint of the landed files.

        Returns:
            The commit.

        Raises:
            PlatformError: As `publish`.
        """
        target = self._target()
        provenance = Provenance(
            inputs=self.inputs, accounts=accounts or {}, expected=expected or {}, landed=landed or {}
        )
        if self.contract.partitioning is None:
            return overwrite_table(frame, target, provenance)
        return overwrite_partitions(frame, target, self.partitions, provenance)

    def overwrite_together(
        self, frame: DataFrame, *, companions: Sequence[Companion], accounts: Mapping[str, Account]
    ) -> Together:
        """Publish the step's partitions of several tables in one commit, audited and accounted for.

        Args:
            frame: The rows of the step's own dataset.
            companions: What appears with them.
            accounts: Partition to what the layer above has for it.

        Returns:
            What was published.

        Raises:
            PlatformError: As `overwrite_together`.
        """
        provenance = Provenance(inputs=self.inputs, accounts=accounts)
        return overwrite_together(frame, self._target(), self.partitions, provenance, companions=companions)

    def keep_copy(
        self,
        frame: DataFrame,
        *,
        name: str,
        accounts: Mapping[str, Account] | None = None,
        expected: Mapping[str, Mapping[str, int]] | None = None,
        landed: Mapping[str, str] | None = None,
    ) -> Commit:
        """Publish the whole dataset as a new immutable copy, which its name then shows; audited and accounted for.

        Args:
            frame: The rows.
            name: Of the copy, from attributes that cannot change.
            accounts: What the layer above has.
            expected: Further figures the copy must have.
            landed: The fingerprint of the landed files.

        Returns:
            The commit.

        Raises:
            PlatformError: As `proxy.load`.
        """
        provenance = Provenance(
            inputs=self.inputs, accounts=accounts or {}, expected=expected or {}, landed=landed or {}
        )
        return proxy.load(frame, self._target(), provenance, name=name)

    def replace_periods(self, frame: DataFrame, *, accounts: Mapping[str, Account] | None = None) -> Commit:
        """Publish each of the step's partitions as a table of its own in the place of the one before it.

        Args:
            frame: The rows.
            accounts: Partition to what the layer above has for it.

        Returns:
            The commit.

        Raises:
            FrozenPeriod: A partition is frozen, and nobody has lifted that guard.
            PlatformError: As `fast_metadata_cleaner.replace_periods`.
        """
        return fast_metadata_cleaner.replace_periods(
            frame,
            self._target(),
            self.partitions,
            Provenance(inputs=self.inputs, accounts=accounts or {}),
            thaw=fast_metadata_cleaner.FROZEN in self.accepted,
        )

    def merge_delivery(self, delivered: DataFrame, *, accounts: Mapping[str, Account] | None = None) -> Commit:
        """Bring the table in line with a full delivery, and write only what differs; audited and accounted for.

        Args:
            delivered: All rows there are, with the contract's columns.
            accounts: What the layer above has for the table as it is afterwards.

        Returns:
            The commit.

        Raises:
            PlatformError: As `merge`.
        """
        provenance = Provenance(inputs=self.inputs, accounts=accounts or {})
        version = self.lake.version(self.contract.dataset)
        if version is None or WHOLE_TABLE not in self.events.publications(self.contract.dataset):
            # Whatever is there by then is replaced: a delivery that came first at the same time, or what was taken
            # back, of which files may not be readable.
            return overwrite_table(delivered, self._target(), provenance)
        current = self.lake.read(self.spark, self.contract.dataset, version)
        return merge(removed(delivered, current, self.contract), self._target(), provenance, at=version)

    def merge_in_order(self, delivery: Callable[[str], Delivery]) -> Commit:
        """Merge the full deliveries of the step's periods, one after the other, and whatever has to follow them.

        What follows is left to further runs where a plan has them (:data:`FOLLOWED`). What was taken from the table
        before these periods, and has not been merged again, comes first.

        Args:
            delivery: Gives that of a period.

        Returns:
            The last commit, with the ledger's lines of all.

        Raises:
            ReplayTooLong: More later executions would follow than the contract allows; nothing was touched.
            PlatformError: As `stateful_merger.execute`.
        """
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
        if FOLLOWED not in self.accepted:
            return stateful_merger.due(self.contract, marks, wanted)
        last = max(asked, default="")
        return sorted({*wanted, *(period for period in stateful_merger.undone(marks) if period < last)})

    def _execute(self, target: Target, period: str, delivery: Delivery) -> Commit:
        return stateful_merger.execute(
            self.spark,
            target,
            self.events,
            period,
            lambda before: removed(delivery.rows(before), before, self.contract),
            Provenance(inputs=self.inputs, accounts={WHOLE_TABLE: delivery.account}),
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
