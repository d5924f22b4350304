"""What the computation of a dataset sees of its run: its partitions, its inputs, and the one way to write."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from patterns.core.commit import Account, Commit
from patterns.core.contract import Contract
from patterns.core.errors import PlatformError
from patterns.core.events import EventLog
from patterns.core.lake import DatasetMissing, Lake
from patterns.core.run import RunContext
from patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from patterns.idempotency.merger import merge, removed
from patterns.quality.audit_write_audit_publish import Engine, Provenance, Target

if TYPE_CHECKING:
    from pathlib import Path

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
        if version is None:
            return merge(delivered, self._target(), provenance, deleted=None)
        current = self.lake.read(self.spark, self.contract.dataset, version)
        return merge(removed(delivered, current, self.contract), self._target(), provenance, at=version)

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
