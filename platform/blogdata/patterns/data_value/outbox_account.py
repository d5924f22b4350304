"""The contents of an outbox: rows that are taken, their records and requests, and the account of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row that may be sent.

    Args:
        identity: The values that identify it.
        key: The key whose order counts.
        at: Its event time, in microseconds since 1970.
        payload: What is sent.
    """

    identity: Sequence[str]
    key: str
    at: int
    payload: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class OutboxLine:
    """The account of a partition: its rows are private, or their records are in one of the states.

    Args:
        partition: Key of the partition.
        source: The version of the source that was taken.
        rows_in: Rows of the source.
        private: Rows that may not be sent.
        states: Number of records that are `delivered`, `waiting` or `sending` (in an open request).
        corrected: Delivered or open records whose row has changed since; they count as what they were.
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
        records: Their number.
        delivered: Those of them that the target has.
        open: Those of them in open requests; while there are any, none is deleted.
    """

    records: int = 0
    delivered: int = 0
    open: int = 0


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A record to deliver.

    Args:
        id: Its identity.
        key: The records of one key are delivered in their order.
        sequence: Its number within the key, from 1, without gaps.
        payload: Its content, as JSON.
        correction: Whether the target has a later record of the key.
    """

    id: str
    key: str
    sequence: int
    payload: str
    correction: bool = False


@dataclass(frozen=True, kw_only=True)
class DeliveryRequest:
    """Records that are sent together.

    Args:
        id: Idempotency key: the target takes the records of one id once.
        records: The records, each of another key.
        bulk: Whether they are sent through the bulk API.
    """

    id: str
    records: Sequence[Delivery]
    bulk: bool


@dataclass(frozen=True, kw_only=True)
class Open:
    """A request whose answer is not known.

    Args:
        request: The request.
        opened: When it was sent first, in seconds since 1970.
        withdrawn: How many of its records may no longer be sent.
    """

    request: DeliveryRequest
    opened: float
    withdrawn: int
