"""The maintenance of a deployment: every action, in the order in which they are taken, and what is maintained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blogdata.orchestration.compacting import Compacting
from blogdata.orchestration.maintenance import Action
from blogdata.orchestration.vacuuming import LogCleaning, Vacuuming
from blogdata.publish.contract import Contract


def actions(contracts: Iterable[Contract]) -> Sequence[Action]:
    """Return the actions, those that replace files before those that remove them."""
    companions: dict[str, list[str]] = {}
    for contract in contracts:
        if contract.appears_with is not None:
            companions.setdefault(contract.appears_with, []).append(contract.dataset)
    return (Compacting(), Vacuuming(), LogCleaning(companions))
