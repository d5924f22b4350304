"""What an erasure will change, and what it does not reach, before anything is changed."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blogdata.erasure import taking_out
from blogdata.erasure.current_rows import Rows
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import erased_lines
from blogdata.patterns.ingestion.landed_lines import faults_of
from blogdata.planning.plan import Plan, Planner
from blogdata.planning.reach import landed_input
from blogdata.publish.contract import Contract, Wanted
from blogdata.publish.partitions import Grain
from blogdata.suppression.identifiers import Identifiers
from blogdata.suppression.landed_persons import Reader
from blogdata.suppression.suppression_list import Suppressed

REASON = "a person is forgotten"
"""Reason of the partitions that run since landed lines of theirs were erased."""


@dataclass(frozen=True, kw_only=True)
class ErasurePlan:
    """What an erasure will change.

    Args:
        registered: The newest time at which any of the persons registered, by these lines; None: none says so.
    """

    lines: Mapping[Path, int]
    registered: float | None
    taken_out: Mapping[str, int]
    runs: Plan
    left: Mapping[str, str]


def look(
    planner: Planner,
    files: Sequence[Path],
    persons: Identifiers,
    *,
    landed: Collection[Contract],
    kept: Collection[Contract],
) -> ErasurePlan:
    """Plan an erasure."""
    landing, suppressed = planner.look.zone.folder, Suppressed.of(persons, secrets.token_bytes())
    registered: list[float] = []
    lines = {file: count for file in files if (count := _count(file, landing, suppressed, registered))}
    sources = {
        source.table: (contract, source.grain)
        for contract in landed
        if any(column.subject for column in contract.columns) and (source := landed_input(contract)) is not None
    }
    asked: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for file in lines:
        table, *folders = file.relative_to(landing).parts
        if table in sources:
            contract, grain = sources[table]
            asked[contract.dataset][_key(folders, grain)] = REASON
    published = {name: {key for key in keys if key in planner.look.published(name)} for name, keys in asked.items()}
    runs = planned(planner, {name: dict.fromkeys(keys, REASON) for name, keys in published.items()})
    gone = taking_out.without_landed_files(planner.look, landed)
    rows = Rows(lake=planner.look.events.lake, events=planner.look.events, landing=landing, persons=persons)
    found = {contract.dataset: rows.of(contract) for contract in kept}
    found |= {contract.dataset: rows.of(contract, gone.get(contract.dataset, ())) for contract in landed}
    return ErasurePlan(
        lines=lines,
        registered=max(registered, default=None),
        taken_out={dataset: each.num_rows for dataset, each in found.items() if each is not None},
        runs=runs,
        left={
            **{error.where: error.what for error in runs.refused},
            **_without_inputs(planner, rows),
            **_without_addresses(rows, kept),
        },
    )


def planned(planner: Planner, asked: Wanted) -> Plan:
    """Plan what runs again; a table whose periods build on one another, from the first one on if that is too long."""
    plan = planner.plan_of_replay(asked)
    return planner.plan_of_replay({**asked, **_whole(planner, (error.where for error in plan.refused))})


def built_anew(planner: Planner) -> Plan:
    """Plan the tables whose periods build on one another and that are behind although everything has run.

    Too many periods would have run again, or a version to begin with is gone, as after an earlier erasure. From the
    first period on they need no earlier version.
    """
    plan = planner.outstanding()
    behind = {*plan.wanted(), *(error.where for error in plan.refused)}
    in_order = [task.main for task in planner.graph.tasks if task.in_order and planner.look.published(task.main)]
    return planner.plan_of_replay(_whole(planner, behind.intersection(in_order)))


def _whole(planner: Planner, datasets: Iterable[str]) -> dict[str, dict[str, str]]:
    return {name: dict.fromkeys(planner.resolve_keys(name, "all"), REASON) for name in datasets}


def _without_inputs(planner: Planner, rows: Rows) -> dict[str, str]:
    """Name the datasets with rows of the persons in partitions that stay as they are, since an input has expired."""
    found = {}
    for task in planner.graph.tasks:
        for contract in task.contracts:
            keys = planner.expired(task, planner.look.published(contract.dataset))
            if keys and (theirs := rows.of(contract, keys)) is not None:
                named = ", ".join(sorted({*theirs["partition"].to_pylist()}))
                found[contract.dataset] = f"{named} cannot be computed again, since an input has expired"
    return found


def _without_addresses(rows: Rows, contracts: Iterable[Contract]) -> dict[str, str]:
    """Name the datasets of which a row does not say from which address it came, if somebody is forgotten by one."""
    return {
        contract.dataset: "its rows do not say from which address they came"
        for contract in contracts
        if rows.persons.addresses
        and not rows.has_addresses(contract)
        and rows.lake.version(contract.dataset) is not None
    }


def derived(lake: Lake, unknown: Collection[str]) -> bool:
    """Return whether given values are ids that were made from requests in access logs: no landed line has them."""
    if not unknown or lake.version("silver.visits") is None:
        return False
    found = lake.columns("silver.visits", ("user_id", "visit_id"))
    return any(value in unknown for name in ("user_id", "visit_id") for value in found[name].to_pylist())


def _count(file: Path, landing: Path, suppressed: Suppressed, registered: list[float]) -> int:
    """Count the lines that go, and add the times at which their users registered."""
    reader, count = Reader(file, landing), 0
    with faults_of(file):
        for offset, line in erased_lines.lines(file):
            raw = erased_lines.raw_of(offset, line)
            if raw and not erased_lines.is_erased(raw):
                named = reader.named(offset, raw)
                if suppressed.goes(named, is_of_users=reader.is_of_users):
                    count += 1
                    registered += [named.at] if reader.is_of_users and named.at is not None else []
    return count


def _key(folders: Sequence[str], grain: Grain) -> str:
    day = folders[0].removeprefix("date=")
    return day if grain is Grain.DAY else f"{day}T{folders[1].removeprefix('hour=')}"
