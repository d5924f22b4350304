"""The contents of an outbox: rows that are taken, their records and requests, and the account of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row that may be sent.

    Args:
        at: Its event time, in microseconds since 1970.
    """

    identity: Sequence[str]
    key: str
    at: int
    payload: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class OutboxLine:
    """The account of a partition: its rows are private, or their records are in one of the states.

    Args:
        withdrawn: Delivered or open records whose row is gone, or may no longer be sent; not part of `states`.
    """

    partition: str
    source: str
    rows_in: int
    private: int
    states: Mapping[str, int]
    corrected: int
    withdrawn: int

    @property
    def missing(self) -> int:
        """Rows that are not accounted for; 0 if none is lost or doubled."""
        return self.rows_in - self.private - sum(self.states.values())


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """The records of forgotten keys.

    Args:
        open: Those of them in open requests; while there are any, none is deleted.
    """

    records: int = 0
    delivered: int = 0
    open: int = 0


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A record to deliver."""

    id: str
    key: str
    sequence: int
    payload: str
    correction: bool = False


@dataclass(frozen=True, kw_only=True)
class DeliveryRequest:
    """Records that are sent together."""

    id: str
    records: Sequence[Delivery]
    bulk: bool


@dataclass(frozen=True, kw_only=True)
class Open:
    """A request whose answer is not known.

    Args:
        opened: When it was sent first, in seconds since 1970.
    """

    request: DeliveryRequest
    opened: float
    withdrawn: int
