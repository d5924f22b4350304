"""The versions of a table that must stay readable, however old they are: every removal of files obeys this list."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from blogdata.contract.contract import Contract
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import EMPTY, applied, base_of
from blogdata.table import companions, members
from blogdata.table.lake import Lake
from blogdata.table.unneeded import LOGGED


def held_versions(
    lake: Lake, events: EventLog, contract: Contract, table: str, *, now: datetime | None = None
) -> set[int]:
    """Find the versions of a table that may still be opened, besides those that its retention keeps."""
    points = _restore_points(events, contract) if table == contract.dataset else set()
    unread = _unread_changes(lake, events, contract, now or datetime.now(timezone.utc))
    return points | unread | _visible(lake, contract.dataset, table)


def first_needed(
    lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str], *, now: datetime | None = None
) -> int:
    """Return the oldest version that a log must still have: somebody holds it, or has not read what came after it."""
    events.publications(contract.dataset)
    held = held_versions(lake, events, contract, contract.dataset, now=now)
    followed = [companions.followed(lake, name) for name in beside if lake.table(name) is not None]
    return min([events.recorded(contract.dataset), *held, *followed])


def _restore_points(events: EventLog, contract: Contract) -> set[int]:
    """Find the versions on which the executions that may be replayed were merged."""
    if contract.executed is None:
        return set()
    made = applied(events.history(contract.dataset))
    kept = made if contract.replay_limit is None else made[-contract.replay_limit - 1 :]
    return {base_of(entry) for entry in kept} - {EMPTY}


def _unread_changes(lake: Lake, events: EventLog, contract: Contract, now: datetime) -> set[int]:
    """Find the versions from which a reader of the change feed reads on; one that has not come for long begins anew."""
    held: set[int] = set()
    for reader in contract.feeds:
        entry, table = events.publications(reader).get(WHOLE_TABLE), lake.table(contract.dataset)
        if entry and table and entry.committed_at and now - entry.committed_at < LOGGED:
            held.update(range(entry.inputs[contract.dataset], table.version()))
    return held


def _visible(lake: Lake, dataset: str, table: str) -> set[int]:
    if table == dataset:
        return set()
    known = {members.table_of(dataset, member.location): member for member in members.seen(lake, dataset).all}
    member = known.get(table)
    return set() if member is None or member.removed_at else {member.version}
