"""What persons are known by: the values that an erasure has to remove."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identifiers:
    """What persons are known by.

    Args:
        user_ids: Ids of users, as they stand in landed rows, like all others.
        logins: Their logins.
        emails: Their e-mail addresses.
        visit_ids: Ids of visits, those of requests in access logs included.
        addresses: Addresses of the network; only those given explicitly, since many persons share one.
    """

    user_ids: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    visit_ids: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()

    def values(self) -> frozenset[str]:
        """Return all of them that are not empty."""
        return (self.user_ids | self.logins | self.emails | self.visit_ids | self.addresses) - {""}
