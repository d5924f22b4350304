"""The versions of a table that must stay readable, however old they are: every removal of files obeys this list."""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.evidence.events import EventLog
from blogdata.evidence.executions import EMPTY, applied
from blogdata.lake import companions, members
from blogdata.lake.lake import Lake
from blogdata.lake.shares import shared_versions
from blogdata.publish.contract import Contract


def held_versions(lake: Lake, events: EventLog, contract: Contract, table: str) -> dict[int, str]:
    """List the versions of a table that somebody may still open, each with the reason.

    Streams hold none: they read landed files. Running readers and steps hold what the retention of the table keeps,
    and replaced copies are tables of their own, which are kept whole (:mod:`blogdata.lake.retired`).
    """
    return {
        **_visible(lake, contract.dataset, table),
        **(_restore_points(events, contract) if table == contract.dataset else {}),
        **shared_versions(lake, table),
    }


def first_needed(lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str]) -> int:
    """Return the oldest version that a log must still have: somebody holds it, or has not read what came after it."""
    events.publications(contract.dataset)
    held = held_versions(lake, events, contract, contract.dataset)
    followed = [companions.followed(lake, one) for one in beside if lake.table(one) is not None]
    return min([events.recorded(contract.dataset), *held, *followed])


def _restore_points(events: EventLog, contract: Contract) -> dict[int, str]:
    if contract.executed is None:
        return {}
    made = applied(events.executions(contract.dataset))
    kept = made if contract.replay_limit is None else made[-contract.replay_limit - 1 :]
    points = {entry.version - 1: entry.partition for entry in kept}
    return {version: f"{period} is merged on it again" for version, period in points.items() if version > EMPTY}


def _visible(lake: Lake, dataset: str, table: str) -> dict[int, str]:
    if table == dataset:
        return {}
    locations = {members.table_of(dataset, one.location): one for one in members.seen(lake, dataset).all}
    member = locations.get(table)
    return {} if member is None or member.removed_at else {member.version: "the pointer names it"}
