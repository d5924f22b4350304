"""What follows from the keys of a deployment, and is computed again when one of them is rotated."""

from __future__ import annotations

from collections.abc import Mapping

from blogdata.contract.contract import Look, Wanted
from quality.contracts import CONTRACTS

VISITOR_KEY = "visitor.key"
"""The key of the tokens of persons."""
# Not weeks of gold.visits_shared: no two of their numbers can be compared, and a second version would tell more.
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    VISITOR_KEY: ("silver.visits", "silver.identities", "silver.users", "silver.users_current", "gold.visits_weekly"),
    **{
        contract.encrypted.key: (contract.dataset,) for contract in CONTRACTS.values() if contract.encrypted is not None
    },
}
"""Key to the datasets whose rows follow from it directly."""


def behind(look: Look, name: str, mark: str | None) -> Wanted:
    """Map datasets to the published partitions that were computed by another key, each with the reason.

    `mark` is that of the key; None: it is still to be made. A partition without tokens has no mark.
    """
    reason = f"another key than {name} is now"
    stale = {
        dataset: {
            key: reason
            for key, entry in look.published(dataset).items()
            if not entry.expired and entry.judged_by.get(name, mark) != mark
        }
        for dataset in FOLLOWS[name]
    }
    return {dataset: keys for dataset, keys in stale.items() if keys}
