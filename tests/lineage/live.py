"""The streamed visits of a deployment: landed, processed, read, and compared with expected rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import oracle
from assets.streams.live_visits import STREAM
from blogdata.ledger import ledger
from blogdata.ledger.events import appended
from blogdata.operate import spark_attached
from blogdata.patterns.error_management.checkpointer import checkpoints
from blogdata.simulator.spec import FaultRates, SimulationSpec
from blogdata.stream import stream as streams
from blogdata.stream.stream import Place, StreamFailed
from blogdata.table.target import RunContext
from lineage.deployment import Deployment
from lineage.worker import Forked
from quality.contracts import EVERY

BRONZE, VISITS = STREAM.datasets
STREAMED = {contract.dataset: contract for contract in STREAM.contracts}
"""The datasets of the visits stream."""
HOURS = tuple(f"2026-01-05T{hour:02d}" for hour in (9, 10, 11))
SPEC = SimulationSpec(
    days=1, visits_per_day=1500, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)
ONE_BY_ONE = replace(STREAM, sources=tuple(replace(one, files_per_batch=1) for one in STREAM.sources))
"""A batch for each landed file."""
ALLOWED = timedelta(minutes=15)
Position = tuple[str, int]


def place(deployment: Deployment, **more: Any) -> Place:
    """Return where a test's stream publishes."""
    run = RunContext(run_id="run", job="tests", code_version="v1")
    return Place(lake=deployment.lake, landing=deployment.landing, run=run, **more)


def tick(deployment: Deployment, stream: streams.Stream = ONE_BY_ONE, *, renew: bool = False, **more: Any) -> None:
    """Process all landed files."""
    with spark_attached.guarded(deployment.settings) as spark:
        folder = deployment.settings.home / "checkpoints"
        streams.run(spark, stream, place(deployment, **more), checkpoints=folder, new_checkpoint=renew)


def interrupted(
    deployment: Deployment, probe: Path, dataset: str, number: int, phase: str, stream: streams.Stream = ONE_BY_ONE
) -> None:
    """End a tick when a batch of a dataset has come to a phase; after `committed`, Spark has not recorded the batch."""
    folder = probe / dataset / str(number)
    folder.mkdir(parents=True)
    (folder / f"{phase}.fail").touch()
    with pytest.raises(StreamFailed):
        tick(deployment, stream, probe=str(probe))


def planned(deployment: Deployment, stream: streams.Stream) -> int:
    """Return the number of the newest planned batch."""
    newest = checkpoints(deployment.settings.checkpoints, stream.name)[-1]
    return max(batch.number for batch in newest.batches())


def reasons(deployment: Deployment, dataset: str, *, since: int = -1) -> Counter[str]:
    """Sum the removed rows by reason, over the commits after a version."""
    commits = [commit for commit in appended(deployment.lake, dataset) if commit.version > since]
    return sum((Counter(entry.reasons) for commit in commits for entry in commit.entries.values()), Counter())


def contents(deployment: Deployment) -> dict[str, list[tuple[Any, ...]]]:
    held = {}
    for name, contract in STREAMED.items():
        columns = [column.name for column in contract.columns if column.name != "batch"]
        held[name] = sorted(deployment.rows(name, *columns), key=repr)
    return held


def problems(deployment: Deployment, datasets: Sequence[str] = STREAM.datasets) -> list[str | None]:
    contracts = [EVERY[name] for name in datasets]
    lines = [line for contract in contracts for line in ledger.audit(deployment.lake, deployment.events, contract)]
    assert lines
    return [line.problem for line in lines if line.problem]


def in_order(deployment: Deployment, key: Callable[[Path], Any] | None = None) -> list[Path]:
    """Set modification times of the landed files in the order of their hours, or by a key."""
    files = sorted(deployment.landing.glob("*/date=*/hour=*/*.json"), key=key)
    for at, file in enumerate(files):
        os.utime(file, (1_767_600_000 + at, 1_767_600_000 + at))
    return files


def simulate(deployment: Deployment) -> Deployment:
    deployment.simulate(SPEC)
    return deployment


def land(deployment: Deployment, world: Deployment, hours: Sequence[str] = HOURS) -> Deployment:
    """Land the three hours, or some of them, in order."""
    deployment.copy_hours(world, hours)
    assert len(in_order(deployment)) == len(hours)
    return deployment


def model(landing: Path, files: list[Path]) -> tuple[set[Position], Counter[tuple[str, str]], list[datetime]]:
    """Compute the published events, the numbers of the others by hour and verdict, and the watermark after each batch.

    A batch is a file.
    """
    left_out = Counter[tuple[str, str]]()
    first: set[Position] = set()
    marks: list[datetime] = []
    winners: dict[tuple[Any, ...], bytes] = {}
    newest: datetime | None = None
    for file in files:
        mark, offset = newest - ALLOWED if newest else None, 0
        late: dict[tuple[Any, ...], bytes] = {}
        for raw in file.read_bytes().split(b"\n")[:-1]:
            position = (str(file.relative_to(landing)), offset)
            offset += len(raw) + 1
            verdict = oracle.judge_json(raw, f"{file.parent.parent.name[5:]}T{file.parent.name[5:]}")
            if verdict.reasons:
                continue
            assert verdict.time is not None
            newest = max(newest or verdict.time, verdict.time)
            identity, hour = (verdict.time, *verdict.identity), f"{verdict.time:%Y-%m-%dT%H}"
            known = winners.get(identity) or late.get(identity)
            if known is not None:
                left_out[hour, "duplicate" if known == raw else "conflict"] += 1
            elif mark is not None and verdict.time < mark:
                left_out[hour, "late"] += 1
                late[identity] = raw
            else:
                first.add(position)
                winners[identity] = raw
        assert newest is not None
        marks.append(newest - ALLOWED)
    return first, left_out, marks


def published(deployment: Deployment) -> tuple[set[Position], Counter[tuple[str, str]]]:
    """Read the published events, and the numbers of the others from the ledger."""
    events = deployment.rows(VISITS, "source_file", "source_offset")
    assert len(set(events)) == len(events)
    left_out = Counter[tuple[str, str]]()
    for hour, entry in deployment.published(VISITS).items():
        left_out.update({(hour, reason): rows for reason, rows in entry.reasons.items() if rows})
    return set(events), left_out


def ticking(deployment: Deployment, probe: Path) -> Forked:
    """Process all landed files in a process of its own, a batch for each; a probe may hold it."""
    return Forked(deployment, probe, partial(tick, probe=str(probe)))
