"""Whether everything is as it must be after a round: rows, accounts, publications, every version one can ask for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from blogdata.evidence.event import PUBLICATION
from blogdata.evidence.recount import repeated
from blogdata.lake.commit import entries_of, parse
from blogdata.lake.lake import marks_rows
from blogdata.patterns.observability import dataset_tracker
from chaos import world as worlds
from chaos.bench import Bench
from chaos.world import Difference
from lineage.deployment import Deployment
from lineage.runs import under_way
from quality.contracts import CONTRACTS

ROWS_KEPT = ("CREATE TABLE", "OPTIMIZE", "VACUUM START", "VACUUM END")
"""Operations that change no row."""


@dataclass(kw_only=True)
class Verdict:
    """What a round left.

    Args:
        differences: Dataset to what is wrong with its rows, all columns, against an undisturbed run.
        counted: The same against the rules in plain Python, for the columns these tell.
        versions: Versions that were read, of all tables.
        twice: Dataset to partitions that were published more than once by what a killed run had left in the server, or
            because of it.
        problems: Everything that is not as it must be.
    """

    differences: dict[str, Difference] = field(default_factory=dict)
    counted: dict[str, Difference] = field(default_factory=dict)
    versions: int = 0
    twice: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def of(
    bench: Bench, deployment: Deployment, *, before: Mapping[str, int], raced: Set[str], late: Collection[str]
) -> Verdict:
    """Look at everything.

    A killed run that was planned before an earlier one's write appeared, and has read the table after that, is refused
    by nobody: it publishes the same rows once more, whenever it goes on, and what is made of them follows. Where it
    restores first, it may end between restoration and merge, and the execution is there to be merged again.

    Args:
        bench: What must be there.
        deployment: What is.
        before: Versions of the tables when the round began.
        raced: Datasets of which a killed run's write went on in the server beside the next run.
        late: Datasets that there was left to do when all runs had ended.
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
    # What goes on may be a restoration, before which the earlier run's execution had appeared.
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
    """Look at every version of a round; gives how often partitions were published that were more than once."""
    commits: Counter[str] = Counter()
    partitions: Counter[str] = Counter()
    published: Counter[tuple[str, int]] = Counter()
    # Read first: what is committed in between is in the log of the table alone.
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
    """Read a version, and hold its rows against what its own commit has counted; gives what is wrong."""
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
        # The line is about the execution; the table has no partitions.
        there = dict.fromkeys(entries_of(dataset, version, info), sum(there.values()))
    return [
        f"{dataset} version {version} {key}: {there.get(key, 0)} rows, {line.rows_out} were audited"
        for key, line in entries_of(dataset, version, info).items()
        if there.get(key, 0) != line.rows_out
    ]


def newest(table: Path) -> int:
    """Give the newest version of a table from the names in its log; -1: there is none."""
    names = [file.stem for file in (table / "_delta_log").glob("*.json")]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def as_json(found: Mapping[str, Difference]) -> str:
    """Give differences as one line."""
    return json.dumps({dataset: vars(each) for dataset, each in found.items() if not each.none})
