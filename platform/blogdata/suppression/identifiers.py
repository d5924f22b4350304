"""What persons are known by: the values that an erasure has to remove."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Identifiers:
    """What persons are known by."""

    user_ids: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    visit_ids: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()

    def __or__(self, other: Identifiers) -> Identifiers:
        """Return what these and other persons are known by."""
        others = other.by_kind()
        return Identifiers(**{kind: values | others[kind] for kind, values in self.by_kind().items()})

    def by_kind(self) -> dict[str, frozenset[str]]:
        """Return the values by the names of the arguments."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def values(self) -> frozenset[str]:
        """Return all of them that are not empty."""
        return frozenset().union(*self.by_kind().values()) - {""}
