"""A table into which daily or hourly deliveries are merged, for tests of the Stateful Merger."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import COMPACTED, Account, Commit
from blogdata.contract.writes import InOrder
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import due, state
from blogdata.patterns.idempotency.stateful_merger import execute
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.step import Step
from blogdata.table.compactor import compact
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext
from toy import LETTERS, resting, target

CONTRACT = replace(LETTERS, dataset="silver.devices_now", write=InOrder(period=Grain.HOUR))
Change = tuple[str, str | None, bool]
DAYS = ("2024-10-05", "2024-10-06", "2024-10-07", "2024-10-08")
DAILY: Mapping[str, Sequence[Change]] = {
    "2024-10-05": [("A", "5th", False), ("B", "5th", False)],
    "2024-10-06": [("B", None, True), ("C", "6th", False)],
    "2024-10-07": [("A", "7th", False), ("D", "7th", False)],
    "2024-10-08": [("C", None, True), ("E", "8th", False)],
}


def step(
    spark: Any,
    root: Path,
    contract: Contract,
    *periods: str,
    run: str,
    accepted: Collection[str] = (),
) -> Step:
    """Build the step context of a run that computes some periods."""
    return Step(
        contract=contract,
        partitions=periods,
        spark=spark,
        access=LakeResource(root=str(root), landing=str(root / "landing")),
        deployment=DeploymentResource(home=str(root)),
        run=RunContext(run_id=run, job="tests", code_version="v1"),
        accepted=accepted,
    )


class Table:
    """A table into which executions are merged, each by its own run."""

    def __init__(
        self,
        spark: Any,
        root: Path,
        deliveries: Mapping[str, Sequence[Change]],
        contract: Contract = CONTRACT,
    ) -> None:
        self.spark, self.root, self.contract = spark, root, contract
        self.deliveries = dict(deliveries)
        self.lake = Lake(root=str(root))
        self.events = EventLog(self.lake)
        self.runs = 0

    def frame(self, changes: Sequence[tuple[Any, ...]]) -> Any:
        return self.spark.createDataFrame(list(changes), "letter STRING, says STRING, is_deleted BOOLEAN")

    def execute(
        self,
        *periods: str,
        run: str | None = None,
        rows: int | None = None,
        changes: Callable[[Any], Any] | None = None,
        lost: bool = False,
        **more: Any,
    ) -> Commit:
        """Merge deliveries, or other given changes, in order, as one run; optionally it loses its server."""
        self.runs += 1
        aim = target(self.root, run or f"run-{self.runs}", self.contract, **more)
        accounts = {} if rows is None else {"": Account(rows_in=rows)}
        for period in periods:
            frame = self.frame(self.deliveries[period])
            said = Provenance(accounts=accounts)
            made = changes or _constant(frame)
            commit = execute(self.spark, aim, self.events, period, made, said, lost=lambda _: lost)
        return commit

    def backfill(self, *periods: str) -> list[str]:
        """Execute these periods and all later ones, as an orchestrator does; return the executed periods."""
        done: list[str] = []
        left = set(periods)
        while todo := due(self.contract, self.events.executions(self.contract.dataset), left):
            self.execute(todo[0])
            done.append(todo[0])
            left.discard(todo[0])
        return done

    def rows(self, version: int | None = None) -> list[tuple[str, str | None]]:
        return resting(self.root, self.contract.dataset, version)

    def letters(self, version: int | None = None) -> str:
        return "".join(letter for letter, _ in self.rows(version))

    def versions(self) -> dict[str, int]:
        """Return the executions that the table consists of, with their versions."""
        lines = state(self.events.executions(self.contract.dataset))
        return {execution: version for execution, version, is_applied in lines if is_applied}

    def gone(self) -> list[str]:
        lines = state(self.events.executions(self.contract.dataset))
        return [execution for execution, _, is_applied in lines if not is_applied]

    def compact(self) -> None:
        self.runs += 1
        aim = target(self.root, f"compaction-{self.runs}", contract=self.contract)
        assert compact(self.spark, aim, ()) is not None

    def operations(self) -> list[str]:
        opened = self.lake.caught_up(self.contract.dataset)
        assert opened is not None
        return [_operation(commit) for _, commit in reversed(list(self.lake.commits(opened)))]

    def problems(self) -> list[str]:
        return [line.problem for line in ledger.audit(self.lake, self.events, self.contract) if line.problem]


def _constant(frame: Any) -> Callable[[Any], Any]:
    return lambda _: frame


def _operation(commit: Mapping[str, Any]) -> str:
    info = json.loads(commit.get("userMetadata", "{}"))
    if COMPACTED in info:
        return "OPTIMIZE"
    if "execution" not in info:
        return str(commit["operation"])
    return "MERGE" if info["execution"]["restores"] is None else "RESTORE"
