"""The counts of a deployment, also independently of the ledger: landed lines against rows, keys against rows."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence import ledger
from evidence.events import EventLog
from lake.lake import Lake
from patterns.ingestion.readiness_marker import scan
from planning.look import landed
from publish.partitions import Grain
from quality.contracts import CONTRACTS
from resources.lake import zone_of
from services.config import Settings


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The counts of a deployment at one moment.

    Args:
        accounts: Dataset to rows in, rows out, and rows left out by reason.
        letters: Dead letters by reason.
        landed: Lines of the hours of arrival that are complete.
        waiting: Lines of hours whose flag is missing.
        lost: Landed lines missing from bronze, and rows missing from an account.
        doubled: Repeated lines in bronze, repeated keys in a table, and surplus rows in an account.
        problems: Accounts that do not add up.
    """

    accounts: Mapping[str, Mapping[str, int]]
    letters: Mapping[str, int]
    landed: int
    waiting: int
    lost: int
    doubled: int
    problems: tuple[str, ...]


def take(settings: Settings) -> Figures:
    """Count the rows of a deployment; all complete hours should be in bronze by now.

    Args:
        settings: Settings of the deployment.
    """
    lake = Lake(root=str(settings.lake))
    events = EventLog(lake)
    ready = {part.key for part in landed(zone_of(settings), "visits", Grain.HOUR)}
    lines, waiting = _landed(settings.landing, ready)
    rows, again = _places(lake)
    accounts: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    missing = surplus = 0
    for name, contract in CONTRACTS.items():
        found = ledger.audit(lake, events, contract)
        if not found:
            continue
        reasons: Counter[str] = Counter()
        for line in found:
            reasons.update(line.entry.reasons)
            gone = line.entry.missing + max(0, line.entry.rows_out - line.rows_there)
            missing, surplus = missing + max(0, gone), surplus + max(0, -line.entry.missing)
            if line.problem:
                problems.append(f"{name} {line.entry.partition}: {line.problem}".replace(" :", ":"))
        entries = [line.entry for line in found]
        figures = {"rows_in": sum(each.rows_in for each in entries), "rows_out": sum(each.rows_out for each in entries)}
        accounts[name] = {**figures, **{reason: count for reason, count in sorted(reasons.items()) if count}}
    return Figures(
        accounts=accounts,
        letters=_letters(lake),
        landed=lines.total(),
        waiting=waiting,
        lost=(lines - rows).total() + missing,
        doubled=again + _twice(lake) + surplus,
        problems=tuple(problems),
    )


def _landed(landing: Path, ready: set[str]) -> tuple[Counter[str], int]:
    lines: Counter[str] = Counter()
    waiting = 0
    for hour in scan(landing / "visits", Grain.HOUR):
        for file in (hour.folder / part.name for part in hour.files):
            content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            count = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
            if hour.key in ready:
                lines[str(file.relative_to(landing))] += count
            else:
                waiting += count
    return lines, waiting


def _places(lake: Lake) -> tuple[Counter[str], int]:
    """Count the distinct lines of each file in bronze, and the rows that repeat one."""
    found = _column_groups(lake, "bronze.visits", ("source_file", "source_offset"))
    lines = Counter(file for file, _ in found)
    return lines, sum(times - 1 for times in found.values())


def _letters(lake: Lake) -> dict[str, int]:
    reasons: Counter[str] = Counter()
    for (found,), times in _column_groups(lake, "bronze.dead_letters", ("reasons",)).items():
        for reason in found:
            reasons[reason] += times
    return dict(sorted(reasons.items()))


def _twice(lake: Lake) -> int:
    """Count the rows that repeat the key of another row in their table."""
    keyed = {name: contract.key for name, contract in CONTRACTS.items() if contract.key}
    return sum(times - 1 for name, key in keyed.items() for times in _column_groups(lake, name, key).values())


def _column_groups(lake: Lake, dataset: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    values = lake.columns(dataset, columns).to_pydict()
    cells = [[tuple(cell) if isinstance(cell, list) else cell for cell in values[name]] for name in columns]
    return Counter(zip(*cells, strict=True))
