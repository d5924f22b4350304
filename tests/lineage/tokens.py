"""What follows from the key of the tokens, and what readers have by way of them."""

from __future__ import annotations

import json
from typing import Any

from blogdata.ledger.events import EventLog
from lineage.deployment import Deployment
from quality.keys import VISITOR_KEY

OF_USERS = ["silver.identities", "silver.users", "silver.users_current"]
VISITS, WEEKLY = "silver.visits", "gold.visits_weekly"
TOKENS = {
    VISITS: ("visit_id", "user_id"),
    "silver.users": ("identity",),
    "silver.users_current": ("identity",),
    "silver.identities": ("identity",),
    WEEKLY: ("visit_id",),
}


def deliver(made: Deployment, day: str, logins: dict[str, str]) -> None:
    made.deliver("users", day, [json.dumps({"id": name, "login": login}).encode() for name, login in logins.items()])


def tokens(made: Deployment) -> set[str]:
    """Return all tokens that follow from the key; ids of the tracker are none."""
    return {
        value
        for dataset, columns in TOKENS.items()
        if made.published(dataset)
        for column in columns
        for value in made.rows(dataset, column)
        if not value.startswith(("user-", "visit-"))
    }


def joined(made: Deployment) -> dict[str, Any]:
    """Return what a reader has of the tables by way of the tokens, without the tokens themselves."""
    return {
        "history": made.asked(
            "SELECT u.user_id, i.login, u.valid_from, u.valid_to, u.is_current, u.snapshots FROM silver.users u"
            " JOIN silver.identities i ON u.identity = i.identity ORDER BY 1, 3"
        ),
        "current": made.asked(
            "SELECT u.user_id, i.login, u.changed_on FROM silver.users_current u"
            " JOIN silver.identities i ON u.identity = i.identity ORDER BY 1"
        ),
    }


def marks(made: Deployment, dataset: str) -> set[str]:
    """Return the versions of the key by which a dataset was computed."""
    entries = EventLog(made.lake).publications(dataset).values()
    return {entry.judged_by[VISITOR_KEY].partition(":")[0] for entry in entries}


def replace_key(made: Deployment, key: str) -> str:
    file = made.settings.home / "secrets" / VISITOR_KEY
    before = file.read_text()
    file.write_text(key)
    return before


def refused(problems: list[str], dataset: str) -> bool:
    (why,) = (problem for problem in problems if f"the tokens of {dataset} were computed by" in problem)
    return "bring the earlier key back" in why and f"blogdata job rotate key={VISITOR_KEY}" in why
