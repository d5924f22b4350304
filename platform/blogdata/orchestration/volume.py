"""The audit `volume`: refuses a publication with too few rows, where the contract asks (Skew Detector)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Account, Entry
from blogdata.patterns.observability import skew_detector
from blogdata.planning import detectors
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of, start_of
from blogdata.publish.schema import Audit
from blogdata.publish.watch import VOLUME

_NAMED = 5


def volume_audits(
    contract: Contract, events: EventLog, accounts: Mapping[str, Account], *, run_id: str
) -> tuple[Audit, ...]:
    """Build the audit of a write whose partitions have too few rows; empty if none has, or if the contract only warns.

    Only earlier runs tell what is usual. A long log that lands at once is published as it is: nobody is told of its
    quiet days in time any more. Nor is a partition refused of which readers see about as many rows already: a quiet one
    that a person has let through, or that came in a long log, may be computed again.
    """
    if not contract.watch.refuses_too_few or not accounts:
        return ()
    assert contract.grain is not None
    known = events.publications(contract.dataset, since=comparable_since(accounts, contract.grain))
    published = {key: entry for key, entry in known.items() if entry.run_id != run_id}
    found = detectors.too_few(contract, published, _fewer_than_shown(contract, known, accounts))
    if not found:
        return ()
    listed = ", ".join(f"'{one.partition}'" for one in found)
    condition = f"max(`{contract.partition_column}`) IN ({listed})"
    if contract.parts is not None:
        # A day of which hours lack has fewer rows for that reason; it is computed again when they come.
        condition += f" AND coalesce({contract.measures['parts']} >= {contract.parts}, false)"
    reason = "; ".join(map(str, found[:_NAMED]))
    return (
        Audit(
            name=VOLUME,
            expression=f"NOT ({condition}) /* {reason} */",
            description="A partition has about as many rows of the layer above as comparable ones",
        ),
    )


def _fewer_than_shown(
    contract: Contract, known: Mapping[str, Entry], accounts: Mapping[str, Account]
) -> dict[str, int]:
    """Map partitions to their new rows; without those that are shown, with all parts, from about as many rows."""
    skew = contract.watch.skew
    assert skew is not None
    least = {
        key: entry.rows_in * (1 - skew.tolerance)
        for key, entry in known.items()
        if detectors.is_complete(contract, entry)
    }
    return {key: each.rows_in for key, each in accounts.items() if key not in least or each.rows_in < least[key]}


def comparable_since(partitions: Iterable[str], grain: Grain) -> str:
    """Return the key of the first partition that counts when some are compared with earlier ones."""
    # The level of the week before the oldest comparable partition is needed, too.
    return key_of(start_of(min(partitions), grain) - timedelta(weeks=skew_detector.WEEKS + 1), grain)
