"""What follows from the keys of a deployment, and is computed again when one of them is rotated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from blogdata.publish.contract import Look, Wanted
from quality.contracts import CONTRACTS
from quality.contracts.requests import NO_REQUESTS

VISITOR_KEY = "visitor.key"
"""The key of the tokens of persons."""
FOLLOWS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Weeks of gold.visits_shared are not among them: no two of their numbers can be compared, and a second version
        # of a week would tell more than the first.
        VISITOR_KEY: (
            "silver.visits",
            "silver.identities",
            "silver.users",
            "silver.users_current",
            "gold.visits_weekly",
        ),
        **{
            contract.encrypted.key: (contract.dataset,)
            for contract in CONTRACTS.values()
            if contract.encrypted is not None
        },
    }
)
"""Key to the datasets whose rows follow from it directly."""


def behind(look: Look, name: str, mark: str | None) -> Wanted:
    """Map datasets to the published partitions that were computed by another key, each with the reason.

    `mark` is that of the key (:attr:`blogdata.orchestration.keys.Key.mark`); None: it is still to be made.
    """
    found = {dataset: dict(_behind(look, dataset, name, mark)) for dataset in FOLLOWS[name]}
    return {dataset: keys for dataset, keys in found.items() if keys}


def _behind(look: Look, dataset: str, name: str, mark: str | None) -> Iterator[tuple[str, str]]:
    # Only visitors of access logs have tokens in silver.visits: events of the tracker say who it was.
    logged = _logged(look) if dataset == "silver.visits" else None
    for key, entry in look.published(dataset).items():
        marked = entry.judged_by.get(name)
        has_tokens = marked is not None or logged is None or key in logged
        if has_tokens and not entry.expired and marked != mark:
            yield key, f"another key than {name} is now"


def _logged(look: Look) -> set[str | None]:
    return {
        hour
        for entry in look.published("bronze.visits").values()
        for hour, _, line_format in entry.breakdowns["event_hours"]
        if line_format not in NO_REQUESTS
    }
