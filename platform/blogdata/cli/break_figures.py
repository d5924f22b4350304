"""The counts of a deployment, also independently of the ledger: landed lines against rows, keys against rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blogdata.evidence import ledger
from blogdata.evidence.events import EventLog
from blogdata.evidence.recount import groups, repeated
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import landed_formats
from blogdata.patterns.ingestion.readiness_marker import scan
from blogdata.planning.snapshot import landed
from blogdata.publish.partitions import Grain
from blogdata.services.config import Settings
from quality.contracts import CONTRACTS
from resources.zone import zone_of


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The counts of a deployment at one moment.

    Args:
        accounts: Dataset to rows in, rows out, and rows left out by reason.
        letters: Dead letters by reason.
        landed: Lines of the hours of arrival that are complete.
        waiting: Lines of hours whose flag is missing.
        lost: Landed lines missing from bronze, and rows missing from an account.
        doubled: Repeated lines in bronze, rows of a table with the same identity, and surplus rows in an account.
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
        doubled=again + sum(repeated(lake, contract) for contract in CONTRACTS.values()) + surplus,
        problems=tuple(problems),
    )


def _landed(landing: Path, ready: set[str]) -> tuple[Counter[str], int]:
    lines: Counter[str] = Counter()
    waiting = 0
    for hour in scan(landing / "visits", Grain.HOUR):
        for file in (hour.folder / part.name for part in hour.files):
            with landed_formats.content(file) as stream:
                content = stream.read().removeprefix(landed_formats.MARK)
            count = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
            if hour.key in ready:
                lines[str(file.relative_to(landing))] += count
            else:
                waiting += count
    return lines, waiting


def _places(lake: Lake) -> tuple[Counter[str], int]:
    """Count the distinct lines of each file in bronze, and the rows that repeat one."""
    found = groups(lake, "bronze.visits", ("source_file", "source_offset"))
    lines = Counter(file for file, _ in found)
    return lines, sum(times - 1 for times in found.values())


def _letters(lake: Lake) -> dict[str, int]:
    reasons: Counter[str] = Counter()
    for (found,), times in groups(lake, "bronze.dead_letters", ("reasons",)).items():
        for reason in found:
            reasons[reason] += times
    return dict(sorted(reasons.items()))
