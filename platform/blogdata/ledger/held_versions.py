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
) -> dict[int, str]:
    """List the versions of a table that somebody may still open, each with the reason.

    Streams hold none: they read landed files. Running readers and steps hold what the retention of the table keeps,
    and replaced copies are tables of their own, which are kept whole (:mod:`blogdata.table.retired`).
    """
    return {
        **_visible(lake, contract.dataset, table),
        **(_restore_points(events, contract) if table == contract.dataset else {}),
        **_unread_changes(lake, events, contract, now or datetime.now(timezone.utc)),
    }


def first_needed(
    lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str], *, now: datetime | None = None
) -> int:
    """Return the oldest version that a log must still have: somebody holds it, or has not read what came after it."""
    events.publications(contract.dataset)
    held = held_versions(lake, events, contract, contract.dataset, now=now)
    followed = [companions.followed(lake, one) for one in beside if lake.table(one) is not None]
    return min([events.recorded(contract.dataset), *held, *followed])


def _restore_points(events: EventLog, contract: Contract) -> dict[int, str]:
    if contract.executed is None:
        return {}
    made = applied(events.history(contract.dataset))
    kept = made if contract.replay_limit is None else made[-contract.replay_limit - 1 :]
    points = {base_of(entry): entry.partition for entry in kept}
    return {version: f"{period} is merged on it again" for version, period in points.items() if version > EMPTY}


def _unread_changes(lake: Lake, events: EventLog, contract: Contract, now: datetime) -> dict[int, str]:
    """Find the versions from which a reader of the change feed reads on; one that has not come for long begins anew."""
    found = {}
    for reader in contract.feeds:
        entry, table = events.publications(reader).get(WHOLE_TABLE), lake.table(contract.dataset)
        if entry and table and entry.committed_at and now - entry.committed_at < LOGGED:
            unread = range(entry.inputs[contract.dataset], table.version())
            found.update(dict.fromkeys(unread, f"{reader} has not read the changes since"))
    return found


def _visible(lake: Lake, dataset: str, table: str) -> dict[int, str]:
    if table == dataset:
        return {}
    locations = {members.table_of(dataset, one.location): one for one in members.seen(lake, dataset).all}
    member = locations.get(table)
    return {} if member is None or member.removed_at else {member.version: "the pointer names it"}
