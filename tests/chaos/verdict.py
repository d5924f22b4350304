"""Checks everything after a round: rows, accounts, publications, and every version of every table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from blogdata.evidence.event import PUBLICATION
from blogdata.lake.commit import entries_of, parse
from blogdata.lake.lake import marks_rows
from blogdata.patterns.observability import dataset_tracker
from chaos import world as worlds
from chaos.bench import Bench
from chaos.recount import repeated
from chaos.world import Difference
from lineage.deployment import Deployment
from lineage.runs import under_way
from quality.contracts import CONTRACTS

ROWS_KEPT = ("CREATE TABLE", "OPTIMIZE", "VACUUM START", "VACUUM END")
"""Operations that change no row."""


@dataclass(kw_only=True)
class Verdict:
    """The result of checking a round.

    Args:
        differences: Dataset to the difference of its rows from those of an undisturbed run, over all columns.
        counted: The same compared with the rules in plain Python, for the columns they compute.
        versions: Number of versions read, over all tables.
        twice: Dataset to partitions published more than once because a killed run's write continued in the server.
        problems: Everything that is wrong.
    """

    differences: dict[str, Difference] = field(default_factory=dict)
    counted: dict[str, Difference] = field(default_factory=dict)
    versions: int = 0
    twice: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def of(
    bench: Bench, deployment: Deployment, *, before: Mapping[str, int], raced: Set[str], late: Collection[str]
) -> Verdict:
    """Check everything.

    A killed run that was planned before an earlier run's write appeared, but read the table after it, is not refused:
    when it continues it publishes the same rows again, and downstream datasets follow. If it restores first, it may end
    between restoration and merge, and then the execution has to be merged again.

    Args:
        bench: The expected content.
        deployment: The deployment to check.
        before: Versions of the tables when the round began.
        raced: Datasets of which a killed run's write continued in the server beside the next run.
        late: Datasets that were still stale when all runs had ended.
    """
    found = Verdict()
    for dataset, contents in worlds.everything(deployment).items():
        found.differences[dataset] = worlds.difference(contents, bench.contents[dataset])
    for dataset, rule in bench.world.rules.items():
        found.counted[dataset] = worlds.difference(worlds.rows(deployment, dataset, rule.columns), rule.rows)
    for name, each in (("an undisturbed run", found.differences), ("the count in plain Python", found.counted)):
        found.problems += [f"{dataset} is not as {name}: {it}" for dataset, it in each.items() if not it.none]
    doubled = {name: repeated(deployment.lake, CONTRACTS[name]) for name in found.differences}
    found.problems += [f"{rows} rows of {dataset} repeat another one" for dataset, rows in doubled.items() if rows]
    missing = sorted(set(bench.contents) - set(found.differences))
    found.problems += [f"{dataset} is not there" for dataset in missing]
    found.problems += deployment.problems()
    found.problems += [f"run {run} counts as under way" for run in under_way(deployment)]
    again = {name: _versions(deployment, name, before.get(name, -1), found) for name in found.differences}
    lineage = dataset_tracker.track(
        deployment.lake, deployment.events, CONTRACTS, landing=str(deployment.settings.landing)
    )
    outdated = {name for dataset in raced if again.get(dataset) for name in lineage.downstream(dataset)}
    # The continuing write may be a restoration, after the earlier run's execution had appeared.
    outdated |= {dataset for dataset in raced if again.get(dataset) and CONTRACTS[dataset].executed}
    for dataset, keys in again.items():
        if dataset in raced | outdated:
            found.twice[dataset] = len(keys)
        elif keys:
            found.problems.append(f"{dataset} published again although it was published: {keys}")
    forgotten = [dataset for dataset in late if dataset not in outdated]
    found.problems += [f"there was something left to do: {forgotten}"] if forgotten else []
    events = deployment.rows("ops.events", "kind", "event_id")
    again_recorded = [event for (kind, event), times in Counter(events).items() if kind == PUBLICATION and times > 1]
    found.problems += [f"publication {event} is in the event log more than once" for event in again_recorded]
    return found


def _versions(deployment: Deployment, dataset: str, before: int, found: Verdict) -> dict[str, int]:
    """Check every version written in a round; return the partitions published repeatedly, with their counts."""
    commits: Counter[str] = Counter()
    partitions: Counter[str] = Counter()
    published: Counter[tuple[str, int]] = Counter()
    # Read first: later commits are then found in the table's log only.
    recorded = Counter((entry.partition, entry.version) for entry in deployment.events.history(dataset))
    for version, entry in deployment.lake.commits(DeltaTable(deployment.lake.path(dataset))):
        info = parse(entry.get("userMetadata"))
        entries = {} if info is None else entries_of(dataset, version, info)
        published.update((partition, version) for partition in entries)
        if version <= before:
            continue
        found.versions += 1
        found.problems += unreadable(deployment, dataset, version)
        if info is not None:
            commits[info["commit_id"]] += 1
            partitions.update(list(entries))
        elif entry["operation"] not in ROWS_KEPT:
            found.problems.append(f"{dataset} version {version} was not audited: {entry['operation']}")
    found.problems += [f"the event log has {what} of {dataset}, which no commit has" for what in recorded - published]
    found.problems += [f"{commit} was published {times} times" for commit, times in commits.items() if times > 1]
    return {key: times for key, times in partitions.items() if times > 1}


def unreadable(deployment: Deployment, dataset: str, version: int) -> list[str]:
    """Read a version and compare its rows with the counts in its own commit; return the differences."""
    if version < 0:
        return []
    path, column = deployment.lake.path(dataset), CONTRACTS[dataset].partition_column
    table = DeltaTable(path, version=version)
    rows = pa.table(QueryBuilder().register("part", table).execute("SELECT * FROM part").read_all()).num_rows
    logged = sum(int(file["num_records"]) for file in pa.table(table.get_add_actions(flatten=True)).to_pylist())
    if rows != logged and not marks_rows(table):
        return [f"{dataset} version {version}: {rows} rows can be read, {logged} are in its log"]
    info = next((parse(said.get("userMetadata")) for _, said in deployment.lake.commits(table, version - 1)), None)
    if info is None:
        return []
    there = deployment.lake.row_counts(dataset, column, version)
    if CONTRACTS[dataset].executed is not None:
        # The commit's line counts the execution; the table has no partitions.
        there = dict.fromkeys(entries_of(dataset, version, info), sum(there.values()))
    return [
        f"{dataset} version {version} {key}: {there.get(key, 0)} rows, {line.rows_out} were audited"
        for key, line in entries_of(dataset, version, info).items()
        if there.get(key, 0) != line.rows_out
    ]


def newest(table: Path) -> int:
    """Return the newest version of a table from the names in its log; -1: there is none."""
    names = [file.stem for file in (table / "_delta_log").glob("*.json")]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def as_json(found: Mapping[str, Difference]) -> str:
    """Format differences as one line."""
    return json.dumps({dataset: vars(each) for dataset, each in found.items() if not each.none})
