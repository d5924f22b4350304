"""Per run: what it published, how long that took, and what a row cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from blogdata.evidence.published_commits import PublishedCommit


@dataclass(frozen=True, kw_only=True)
class DatasetCost:
    """What a dataset cost within a run.

    Args:
        dataset: Name as `layer.table`.
        partitions: Number of partitions published.
        rows: Rows published.
        seconds: Seconds of its commits.
    """

    dataset: str
    partitions: int
    rows: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """A run that published something.

    Args:
        run_id: Its id.
        job: Its job.
        trigger: What started it.
        code_version: Version of the code.
        began_at: Start of its first computation.
        ended_at: When its last commit was recorded.
        rows: Rows it published.
        seconds: Sum of its commits' seconds; datasets that appear in one commit count once.
        microseconds_per_row: Seconds by row; None if it published no row.
        datasets: What each dataset cost, the most expensive first.
    """

    run_id: str
    job: str
    trigger: str
    code_version: str
    began_at: datetime
    ended_at: datetime
    rows: int
    seconds: float
    microseconds_per_row: float | None
    datasets: Sequence[DatasetCost]


def runs_of(commits: Sequence[PublishedCommit], companions: frozenset[str]) -> list[RunCost]:
    """Group commits by run, the newest run first.

    Args:
        commits: The commits, in the order in which they were recorded.
        companions: Datasets that appear with another one: their commits take no time of their own.
    """
    by_run: dict[str, list[PublishedCommit]] = {}
    for commit in commits:
        by_run.setdefault(commit.run_id, []).append(commit)
    found = [_run(run_id, own, companions) for run_id, own in by_run.items()]
    return sorted(found, key=lambda run: run.ended_at, reverse=True)


def _run(run_id: str, commits: Sequence[PublishedCommit], companions: frozenset[str]) -> RunCost:
    rows = sum(commit.rows_out for commit in commits)
    seconds = sum(commit.seconds for commit in commits if commit.dataset not in companions)
    by_dataset: dict[str, list[PublishedCommit]] = {}
    for commit in commits:
        by_dataset.setdefault(commit.dataset, []).append(commit)
    return RunCost(
        run_id=run_id,
        job=commits[0].job,
        trigger=commits[0].trigger,
        code_version=commits[0].code_version,
        began_at=min(commit.recorded_at - timedelta(seconds=commit.seconds) for commit in commits),
        ended_at=max(commit.recorded_at for commit in commits),
        rows=rows,
        seconds=round(seconds, 3),
        microseconds_per_row=round(seconds * 1_000_000 / rows, 3) if rows else None,
        datasets=sorted(
            (
                DatasetCost(
                    dataset=dataset,
                    partitions=sum(commit.partitions for commit in own),
                    rows=sum(commit.rows_out for commit in own),
                    seconds=0.0 if dataset in companions else round(sum(commit.seconds for commit in own), 3),
                )
                for dataset, own in by_dataset.items()
            ),
            key=lambda one: (-one.seconds, one.dataset),
        ),
    )
