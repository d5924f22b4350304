"""The interface of a dataset's computation to its run: partitions, pinned inputs, and the only way to publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.contract.publication import WHOLE_TABLE, Account, Added, Commit
from blogdata.contract.writes import ByPeriod, Copy
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing.readiness_marker import LandingZone
from blogdata.ledger import executions
from blogdata.patterns.data_flow import single_runner
from blogdata.patterns.idempotency import fast_metadata_cleaner, merger, proxy, stateful_merger
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.patterns.idempotency.transactional_writer import overwrite_together
from blogdata.patterns.security.fine_grained_accessor_for_resources import DeclaredLake, reach_of
from blogdata.runs import deployment_keys
from blogdata.runs.deployment_keys import Key
from blogdata.table import tables
from blogdata.table.audit import FROZEN, lifted_audits
from blogdata.table.lake import DatasetMissing
from blogdata.table.target import Additions, Companion, Provenance, RunContext, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from blogdata.runs.lake_resource import DeploymentResource, LakeResource


@dataclass(frozen=True, kw_only=True)
class FullDelivery:
    """A full delivery to be merged into a dataset; `rows` takes the table before. With `adds`, it has none of them."""

    rows: Callable[[DataFrame], DataFrame]
    account: Account
    adds: bool = False


@dataclass(frozen=True, kw_only=True)
class Changes(FullDelivery):
    """Changes to be merged into a dataset, one row per key: what they do not name stays as it is.

    The rows have the contract's columns and the mark of removed ones,
    :data:`blogdata.patterns.idempotency.merger.DELETED`.
    """


@dataclass(frozen=True, kw_only=True)
class Upstream(Provenance):
    """The figures of the layer above that a publication is audited against; the step itself adds what it read.

    `copy` names the immutable copy, for a dataset that keeps copies; built from attributes that never change.
    """

    copy: str | None = None


class Step:
    """One computation of one dataset for some partitions.

    Each input is pinned to one version, which is recorded in the commit. `accepted` names the guards that a person has
    lifted for this run. `stale` are the partitions that run because an input changed, and not because a person asked
    for them. `companions` are published together with the dataset. The step's lake has what these contracts declare.
    """

    def __init__(
        self,
        *,
        contract: Contract,
        partitions: Sequence[str],
        spark: SparkSession,
        access: LakeResource,
        deployment: DeploymentResource,
        run: RunContext,
        accepted: Collection[str] = (),
        stale: Collection[str] = (),
        companions: Sequence[Contract] = (),
    ) -> None:
        self.contract = contract
        self.partitions = tuple(sorted(partitions))
        self.spark = spark
        self.reach = reach_of((contract, *companions))
        self.lake = DeclaredLake(root=access.lake.root, storage_options=access.lake.storage_options, reach=self.reach)
        self.events = access.events
        self.landing = access.landing_path
        self.run = run
        self.deployment = deployment
        self.accepted = frozenset(accepted)
        self.stale = frozenset(stale) & frozenset(partitions)
        self.started = time.monotonic()
        self.inputs: dict[str, int] = {}
        self.judged_by: dict[str, str] = {}
        self._keys: dict[str, Key] = {}
        self._published: dict[str, bool] = {}
        self._access = access

    @property
    def landing_zone(self) -> LandingZone:
        return self._access.landing_zone

    def read(self, dataset: str, partitions: Collection[str] | None = None) -> DataFrame:
        """Read a dataset, or some partitions, at its pinned version: the newest one when the step first used it."""
        return self.lake.read(self.spark, dataset, self.pin(dataset), partitions=partitions)

    def pin(self, dataset: str) -> int:
        """Pin an input to its newest version on first use, and return the pinned version."""
        if dataset not in self.inputs:
            version = self.lake.version(dataset)
            if version is None:
                raise DatasetMissing(
                    what=f"{dataset} has no table yet",
                    where=f"input of {self.contract.dataset}",
                    next_step=Remedy(f"materialize {dataset} first, or run: ", Run()),
                )
            self.inputs[dataset] = version
        return self.inputs[dataset]

    def exists(self, dataset: str) -> bool:
        """Return whether a dataset had been published when the step first asked: it reads all of one state."""
        if dataset not in self._published:
            self._published[dataset] = dataset in self.inputs or self.lake.version(dataset) is not None
        return self._published[dataset]

    def token_key(self, name: str) -> str:
        """Read the key that tokens of the dataset follow from; which one it was is recorded in the commit."""
        if name not in self._keys:
            key = deployment_keys.current(self.deployment.settings(), name)
            if deployment_keys.ROTATING not in self.accepted:
                deployment_keys.require_same(name, key, self.events.publications(self.contract.dataset))
            self._keys[name] = key
            self.judged_by[name] = key.mark
        return self._keys[name].secret.reveal()

    def publish(
        self,
        rows: DataFrame | FullDelivery | Callable[[str], FullDelivery],
        source: Upstream | None = None,
        *,
        companions: Sequence[Companion] = (),
    ) -> Mapping[str, Commit]:
        """Audit and publish the rows of the step with the write method of the contract; return commits by dataset.

        `rows` are all rows of the partitions or of the table; of a merged dataset, its delivery, which has its own
        account instead of `source`; of one whose periods are merged in order, a function from a period to its delivery:
        the commit is then the last one, with the entries of all executions.
        """
        if isinstance(rows, FullDelivery):
            return self._of_one(self._merge_delivery(rows))
        given = source or Upstream()
        provenance = replace(given, inputs=self.inputs, judged_by={**self.judged_by, **given.judged_by})
        if callable(rows):
            return self._of_one(self._merge_in_order(rows))
        write, target = self.contract.write, self._target()
        if isinstance(write, Copy):
            assert provenance.copy is not None
            return self._of_one(proxy.load(rows, target, provenance, name=provenance.copy))
        if isinstance(write, ByPeriod):
            replace_periods, thaw = fast_metadata_cleaner.replace_periods, FROZEN in self.accepted
            return self._of_one(replace_periods(rows, target, self.partitions, provenance, thaw=thaw))
        for companion in companions:
            self.reach.require_write(companion.contract.dataset)
        if companions:
            return overwrite_together(rows, target, self.partitions, provenance, companions=companions)
        if self.contract.partitioning is None:
            return self._of_one(overwrite_table(rows, target, provenance))
        return self._of_one(overwrite_partitions(rows, target, self.partitions, provenance))

    def _of_one(self, commit: Commit) -> Mapping[str, Commit]:
        return {self.contract.dataset: commit}

    def _merge_delivery(self, delivery: FullDelivery) -> Commit:
        contract, target = self.contract, self._target()
        version = self.lake.version(contract.dataset)
        if version is None or WHOLE_TABLE not in self.events.publications(contract.dataset):
            # Replaces what the table has: a concurrent first delivery, or a reverted one whose files may be unreadable.
            rows = delivery.rows(self.spark.createDataFrame([], contract.ddl))
            return overwrite_table(rows, target, self._provenance_of(delivery))
        # Before the read: adds new contract columns to an older table, null in the existing rows.
        tables.enforce(self.spark, self.lake, contract)
        version = self.lake.version(contract.dataset)
        assert version is not None
        rows = delivery.rows(self.lake.read(self.spark, contract.dataset, version))
        provenance = self._provenance_of(delivery)
        if not delivery.adds:
            return merger.merge_all(rows, target, provenance, at=version)
        before = self.events.publications(contract.dataset)[WHOLE_TABLE]
        added = Added(after=before.changed, rows_before=before.rows_out, slices=(), times=1)
        additions = Additions(at=version, of={WHOLE_TABLE: added})
        return merger.add(rows, target, replace(provenance, additions=additions), at=version)

    def _provenance_of(self, delivery: FullDelivery) -> Provenance:
        accounts = {WHOLE_TABLE: delivery.account}
        return Provenance(inputs=self.inputs, accounts=accounts, judged_by=self.judged_by)

    def _merge_in_order(self, delivery: Callable[[str], FullDelivery]) -> Commit:
        """Merge the step's periods in order, with undone executions before them and later ones after them."""
        # The table still has retired columns until they are removed.
        contract = carried(self.contract, self.lake.caught_up(self.contract.dataset))
        target = replace(self._target(), contract=contract)
        commits = single_runner.in_turn(
            self.partitions, self._due, lambda period: self._execute(target, period, delivery(period))
        )
        entries = {period: entry for commit in commits for period, entry in commit.entries.items()}
        return replace(commits[-1], entries=entries, repeated=all(commit.repeated for commit in commits))

    def _due(self, asked: Collection[str]) -> list[str]:
        marks = self.events.history(self.contract.dataset)
        executed = {mark.partition for mark in marks}
        # Adds reverted executions, which `due` does not derive from the request: the table is unreadable without them.
        wanted = {*asked, *(executed - self.events.publications(self.contract.dataset).keys())}
        return executions.due(self.contract, marks, wanted)

    def _execute(self, target: Target, period: str, delivery: FullDelivery) -> Commit:
        def changes(before: DataFrame) -> DataFrame:
            rows, contract = delivery.rows(before), target.contract
            if isinstance(delivery, Changes):
                return rows
            return merger.differences(merger.unambiguous(rows, contract), before, contract)

        provenance = self._provenance_of(delivery)
        return stateful_merger.execute(self.spark, target, self.events, period, changes, provenance)

    def _target(self) -> Target:
        return Target(
            lake=self._access.lake,
            contract=self.contract,
            run=self.run,
            lifted=lifted_audits(self.accepted, self.contract.dataset),
            may_read=self.reach.reads,
        )


class InputChanged(PlatformError):
    transient = True
