"""What all datasets that are served outside the lake have in common: their asset, their step, and what is requested."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.runs.checks import LEDGER
from blogdata.runs.computation import Context, log_event, partitions_of
from blogdata.runs.dataset import Calendar, deps, described, outputs
from blogdata.runs.names import asset_key
from blogdata.runs.refresh_job import op_failing_after_output
from blogdata.runs.refresh_request import Request
from blogdata.runs.retries import failing_after_output


@dataclass(frozen=True, kw_only=True)
class ServedDataset(ABC):
    """A dataset that is served outside the lake; `balanced` describes its check `ledger`."""

    contract: Contract
    kind: ClassVar[str]
    resources: ClassVar[frozenset[str]]
    balanced: ClassVar[str]

    @abstractmethod
    def due(self, context: Context) -> Sequence[str]:
        """Find the partitions that a run of the job `refresh` serves."""

    @abstractmethod
    def serve(self, context: Context, partitions: Sequence[str]) -> None:
        """Serve partitions, and log checks and events."""

    @property
    def key(self) -> dg.AssetKey:
        return asset_key(self.contract.dataset)

    def check_ledger(self, context: Context, **judged: Any) -> None:
        log_event(context, dg.AssetCheckEvaluation(asset_key=self.key, check_name=LEDGER, **judged))

    def asset(self, calendar: Calendar, version: str) -> dg.AssetsDefinition:
        """Build the asset: a backfill is one run, and one run at a time writes it."""
        contract = self.contract
        assert contract.grain is not None

        def serve(context: dg.AssetExecutionContext) -> None:
            self.serve(context, partitions_of(context, contract.dataset))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)

            asset = dg.multi_asset(
                name="__".join(self.key.path),
                specs=[dg.AssetSpec(**{**described(contract, version), "kinds": {self.kind}}, deps=deps(contract))],
                partitions_def=calendar[contract.grain],
                backfill_policy=dg.BackfillPolicy.single_run(),
                pool=pool_of(contract.dataset),
                required_resource_keys=set(self.resources),
                check_specs=[dg.AssetCheckSpec(LEDGER, asset=self.key, blocking=True, description=self.balanced)],
            )
            return asset(failing_after_output(serve, outputs))

    def step(self) -> dg.OpDefinition:
        """Build the op of the job `refresh` that serves what is due, unless the run is for other datasets."""
        contract = self.contract

        def step(context: dg.OpExecutionContext) -> None:
            request: Request = context.resources.request
            if request.is_for([contract.dataset]):
                self.serve(context, self.due(context))

        resources = {*self.resources, "request"}
        return op_failing_after_output(contract.dataset, contract.description, resources, step)


def requested(
    request: Request, contract: Contract, sources: Sequence[str], published: Callable[[], Collection[str]]
) -> list[str] | None:
    """Find the partitions that a run was asked to serve, among those published; None if it serves whatever is due."""
    if window := request.window:
        return [key for key in published() if window.holds(key, contract.grain)]
    if request.only_again:
        asked = {key for name in (*sources, contract.dataset) for key in request.again.get(name, ())}
        return sorted(asked & set(published()))
    return None
