"""What an erasure will change, and what it does not reach, before anything is changed."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blogdata.contract.contract import Wanted
from blogdata.contract.partitions import Grain
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.landing.landed_persons import FIELDS, Kind, kind_of
from blogdata.landing.suppression_list import Suppressed
from blogdata.operate.config import LogSettings
from blogdata.planning.plan import Plan, Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.privacy import erased_rows
from blogdata.privacy.erased_rows import NEVER_COMPUTED_AGAIN, Rows, has_lines, without_landed_files
from blogdata.privacy.persons import TABLES, Match, named_in
from quality.contracts import LANDED

REASON = "a person is forgotten"
"""Reason of the partitions that run since landed lines of theirs were erased."""


@dataclass(frozen=True, kw_only=True)
class ErasurePlan:
    """What an erasure will change."""

    match: Match
    look: Snapshot
    lines: Mapping[Path, int]
    """Landed file to the number of lines that go."""
    registered: float | None
    """The newest time at which any of the persons registered, by these lines; None: none says so."""
    taken_out: Mapping[str, int]
    """Dataset to the number of rows that go and are not computed again."""
    runs: Plan
    left: Mapping[str, str]
    """Place that is not reached, to the reason."""

    @property
    def known_by(self) -> str:
        kinds = self.match.persons.by_kind().items()
        return ", ".join(f"{len(values):,} {kind.replace('_ids', 's')}" for kind, values in kinds if values)

    def rows(self) -> Iterator[tuple[str, int | None, int | None, int | None]]:
        """List what changes: place, partitions, files and rows; None where it is not known."""
        landing = self.look.zone.folder
        for folder in TABLES:
            counts = [n for file, n in self.lines.items() if file.relative_to(landing).parts[0] == folder]
            if counts:
                yield f"landing/{folder}", None, len(counts), sum(counts)
        for dataset, rows in self.taken_out.items():
            yield dataset, None, None, rows
        for run in self.runs.runs:
            yield run.task.main, len(run.keys) or 1, None, None

    def require_reached(self, leave: Sequence[str]) -> None:
        """Refuse an erasure after which the persons stay somewhere, except in the places of `leave`."""
        refuse_unknown(leave, self.left, where="leave", kind="place that is not reached")
        if missed := {place: why for place, why in self.left.items() if place not in leave}:
            raise ConfigurationError(
                what="the persons would stay in " + "; ".join(f"{place}: {why}" for place, why in missed.items()),
                where="forget",
                next_step="nothing was erased; remove what is named, or go on without it: "
                + " ".join(f"--leave {place}" for place in missed),
            )


def look(planner: Planner, files: Sequence[Path], match: Match, *, logs: LogSettings) -> ErasurePlan:
    landing, suppressed = planner.look.zone.folder, Suppressed.of(match.persons, secrets.token_bytes())
    registered: list[float] = []
    lines: dict[Path, int] = {}
    for file in files:
        is_of_users = kind_of(file, landing) is Kind.USERS
        gone = [row for row in named_in(file, landing, logs) if suppressed.goes(row[1], is_of_users=is_of_users)]
        if gone:
            lines[file] = len({offset for offsets, _ in gone for offset in offsets})
            registered += [named.at for _, named in gone if is_of_users and named.at is not None]
    sources = {source.table: (contract, source.grain) for contract, source in erased_rows.landing()}
    asked: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for file in lines:
        table, *folders = file.relative_to(landing).parts
        if table in sources:
            contract, grain = sources[table]
            day = folders[0].removeprefix("date=")
            key = day if grain is Grain.DAY else f"{day}T{folders[1].removeprefix('hour=')}"
            if key in planner.look.published(contract.dataset):
                asked[contract.dataset][key] = REASON
    runs = planned(planner, asked)
    expired = without_landed_files(planner.look)
    events = planner.look.events
    rows = Rows(events=events, landing=landing, persons=match.persons, logs=logs)
    theirs = {contract.dataset: rows.of(contract) for contract in NEVER_COMPUTED_AGAIN}
    theirs |= {dataset: rows.of(LANDED[dataset], keys) for dataset, keys in expired.items()}
    return ErasurePlan(
        match=match,
        look=planner.look,
        lines=lines,
        registered=max(registered, default=None),
        taken_out={dataset: table.num_rows for dataset, table in theirs.items() if table is not None},
        runs=runs,
        left={
            **{error.where: error.what for error in runs.refused},
            **_without_inputs(planner, rows),
            **_without_addresses(rows),
        },
    )


def planned(planner: Planner, asked: Wanted) -> Plan:
    """Plan what runs again; a table whose periods build on one another from its first on, if its plan is refused."""
    plan = planner.plan_of_replay(asked)
    return planner.plan_of_replay({**asked, **_whole(planner, (error.where for error in plan.refused))})


def built_anew(planner: Planner) -> Plan:
    """Plan the tables whose periods build on one another and that are behind although everything has run.

    Too many periods would have run again, or the version to begin with is gone, as after an earlier erasure. From its
    first period on, a table needs no earlier version.
    """
    plan = planner.outstanding()
    behind = {*plan.wanted(), *(error.where for error in plan.refused)}
    in_order = [task.main for task in planner.graph.tasks if task.in_order and planner.look.published(task.main)]
    return planner.plan_of_replay(_whole(planner, behind.intersection(in_order)))


def _whole(planner: Planner, datasets: Iterable[str]) -> dict[str, dict[str, str]]:
    return {name: dict.fromkeys(planner.resolve_keys(name, "all"), REASON) for name in datasets}


def _without_inputs(planner: Planner, rows: Rows) -> dict[str, str]:
    """Name the datasets with rows of the persons in partitions that stay as they are, since an input has expired."""
    places = {}
    for task in planner.graph.tasks:
        for contract in task.contracts:
            keys = planner.expired(task, planner.look.published(contract.dataset))
            if keys and (theirs := rows.of(contract, keys)) is not None:
                named = ", ".join(sorted({*theirs["partition"].to_pylist()}))
                places[contract.dataset] = f"{named} cannot be computed again, since an input has expired"
    return places


def _without_addresses(rows: Rows) -> dict[str, str]:
    """Name the datasets of which a row does not say from which address it came, if somebody is forgotten by one."""
    return {
        contract.dataset: "its rows do not say from which address they came"
        for contract in NEVER_COMPUTED_AGAIN
        if rows.persons.addresses
        and not has_lines(contract)
        and not any(FIELDS.get(column.name) == "addresses" for column in contract.columns)
        and rows.lake.version(contract.dataset) is not None
    }
