"""What an erasure will change, and what it does not reach, before anything is changed."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import erased_lines, landed_content
from blogdata.patterns.ingestion.landed_lines import faults_of
from blogdata.planning.plan import Plan, Planner
from blogdata.planning.reach import landed_input
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.suppression.identifiers import Identifiers
from blogdata.suppression.landed_persons import Reader
from blogdata.suppression.suppression_list import Suppressed

REASON = "a person is forgotten"
"""Reason of the partitions that run since landed lines of theirs were erased."""
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class ErasurePlan:
    """What an erasure will change.

    Args:
        lines: Landed file to its lines that are erased.
        runs: What is computed again.
        left: Place that is not reached, to the reason.
    """

    lines: Mapping[Path, int]
    runs: Plan
    left: Mapping[str, str]


def look(
    planner: Planner,
    files: Sequence[Path],
    persons: Identifiers,
    *,
    landed: Iterable[Contract],
    streamed: Iterable[str],
) -> ErasurePlan:
    """Plan an erasure.

    Args:
        planner: The planner, with a snapshot of the deployment.
        files: The landed files that can be read.
        persons: All that the persons are known by.
        landed: Contracts of the datasets that are computed from the landing zone.
        streamed: Names of the datasets that streams append to.
    """
    landing, suppressed = planner.look.zone.folder, Suppressed.of(persons, secrets.token_bytes())
    lines = {file: count for file in files if (count := _count(file, landing, suppressed))}
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
    runs = planner.plan_of_replay({name: dict.fromkeys(keys, REASON) for name, keys in published.items()})
    lake = planner.look.events.lake
    left = {error.where: error.what for error in runs.refused}
    left.update(_without_landed_files(planner, sources, suppressed))
    left.update({name: "its rows come by a stream" for name in streamed if lake.version(name) is not None})
    left.update(_in_places(lake, persons.addresses))
    return ErasurePlan(lines=lines, runs=runs, left=left)


def derived(lake: Lake, unknown: Collection[str]) -> bool:
    """Return whether given values are ids that were made from requests in access logs: no landed line has them."""
    if not unknown or lake.version("silver.visits") is None:
        return False
    found = lake.columns("silver.visits", ("user_id", "visit_id"))
    return any(value in unknown for name in ("user_id", "visit_id") for value in found[name].to_pylist())


def _count(file: Path, landing: Path, suppressed: Suppressed) -> int:
    reader, count = Reader(file, landing), 0
    with faults_of(file):
        for offset, line in erased_lines.lines(file):
            raw = erased_lines.raw_of(offset, line)
            if raw and not erased_lines.is_erased(raw):
                count += suppressed.goes(reader.named(offset, raw), is_of_users=reader.is_of_users)
    return count


def _key(folders: Sequence[str], grain: Grain) -> str:
    day = folders[0].removeprefix("date=")
    return day if grain is Grain.DAY else f"{day}T{folders[1].removeprefix('hour=')}"


def _without_landed_files(
    planner: Planner, sources: Mapping[str, tuple[Contract, Grain]], suppressed: Suppressed
) -> dict[str, str]:
    """Find the published partitions with lines of the persons whose landed files are gone."""
    look, found = planner.look, {}
    for table, (contract, grain) in sources.items():
        there = {partition.key for partition in look.zone.scan(table, grain)}
        gone = [key for key, entry in look.published(contract.dataset).items() if key not in there and entry.rows_out]
        named = sorted(key for key in gone if _has_lines(look.events.lake, look.zone.folder, contract, key, suppressed))
        if named:
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            found[contract.dataset] = f"their landed files are gone: {', '.join(named[:_NAMED])}{more}"
    return found


def _has_lines(lake: Lake, landing: Path, contract: Contract, key: str, suppressed: Suppressed) -> bool:
    readers: dict[str, Reader] = {}
    for line in sorted(landed_content.published_lines(lake, contract, key)):
        reader = readers.setdefault(line.file, Reader(landing / line.file, landing))
        if suppressed.goes(reader.named(line.offset, line.raw), is_of_users=reader.is_of_users):
            return True
    return False


def _in_places(lake: Lake, addresses: Set[str]) -> dict[str, str]:
    """Say whether the table of places, which is never computed anew, has some of the addresses."""
    if not addresses or lake.version("silver.places") is None:
        return {}
    known = lake.columns("silver.places", ("ip",))["ip"].to_pylist()
    return {"silver.places": "it keeps the places of addresses"} if addresses & {*known} else {}
