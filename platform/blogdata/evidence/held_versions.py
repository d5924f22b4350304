"""The versions of a table that must stay readable, however old they are: every removal of files obeys this list."""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.evidence.events import EVENTS, EventLog
from blogdata.evidence.executions import EMPTY, applied
from blogdata.lake import companions, members
from blogdata.lake.lake import Lake
from blogdata.lake.shares import shared_versions
from blogdata.publish.contract import Contract


def held_versions(lake: Lake, events: EventLog, contract: Contract, table: str) -> dict[int, str]:
    """List the versions of a table that somebody may still open: shared ones, restore points, visible members, and the
    second copy of the event log's rows.

    Streams hold none: they read landed files. Running readers and steps hold what the retention of the table keeps,
    and replaced copies are tables of their own, which are kept whole (:mod:`blogdata.lake.retired`).

    Args:
        lake: The tables' root.
        events: The event log.
        contract: Contract of the dataset.
        table: Name of its table, or of a member's table.

    Returns:
        Version to the reason why it is held.
    """
    return {
        **_visible(lake, contract.dataset, table),
        **(_restore_points(events, contract) if table == contract.dataset else {}),
        **(_second_copy(events) if table == EVENTS else {}),
        **shared_versions(lake, table),
    }


def first_needed(lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str]) -> int:
    """Return the oldest version that a log must still have: somebody holds it, or has not read what came after it.

    Args:
        lake: The tables' root.
        events: The event log; it is brought up to date first.
        contract: Contract of the dataset.
        beside: Its companions: a companion follows the commits of its main dataset.
    """
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


def _second_copy(events: EventLog) -> dict[int, str]:
    # Publications older than the logs of their tables are nowhere else.
    version = events.compacted_from()
    return {} if version is None else {version: "it has the event log's rows a second time"}


def _visible(lake: Lake, dataset: str, table: str) -> dict[int, str]:
    if table == dataset:
        return {}
    locations = {members.table_of(dataset, one.location): one for one in members.seen(lake, dataset).all}
    member = locations.get(table)
    return {} if member is None or member.removed_at else {member.version: "the pointer names it"}
