"""The ways to write a dataset's table; a contract declares one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from blogdata.contract.partitions import Grain


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Slices of an input: rows that come in a later slice change no row that was computed before they came."""

    of: str
    """The input, as `layer.table`; its reach tells which slices came (`came`)."""
    column: str
    """Column of the input with the slice of a row, STRING; slices come in the order of their keys."""
    most: int = 8
    """How often rows are added to a partition until it is replaced whole, so that its files stay few."""


@dataclass(frozen=True, kw_only=True)
class Replace:
    """Partitions, or the whole table, are replaced (Data Overwrite)."""

    slices: Slices | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Rows change one by one (Merger): of a large table, only files with changed rows are written again."""


@dataclass(frozen=True, kw_only=True)
class InOrder:
    """Executions, one per period, build on one another in their order (Stateful Merger)."""

    period: Grain
    replay_limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Each load is an immutable copy of the whole dataset (Proxy); a replaced copy is kept for `retention_days`."""


@dataclass(frozen=True, kw_only=True)
class Sorted:
    """The order of the rows of final partitions: rows that are near in any of some columns lie in the same files."""

    by: tuple[str, ...]
    """The columns, each with file statistics; without these their order lets no reader skip a file."""
    file_bytes: int = 1024**2
    """Size of a file, in bytes. Smaller ones let readers skip more, and cost more to open. A partition that is not
    twice as large stays as it was written."""


@dataclass(frozen=True, kw_only=True)
class ByPeriod:
    """Each partition is a table of its own behind one name (Fast Metadata Cleaner)."""

    kept: timedelta
    """How long a replaced table is kept; no reader may use one version for longer."""
    frozen: Sorted | None = field(default=None, repr=False)
    """How the rows of frozen years are sorted; None: as they were written. It promises nothing about rows."""
    slices: Slices | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class AppearsWith:
    """Rows of a companion are published by the commits of its main dataset (Transactional Writer)."""

    main: str


@dataclass(frozen=True, kw_only=True)
class Append:
    """A stream appends its batches."""

    stream: str


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Partitions are delivered to a database, which replaces the tables of the inputs in one transaction."""

    schema: str
    without: tuple[str, ...] = ()
    """Columns, as `layer.table.column`, that are not served: those of datasets that retire them."""


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Rows of the input are sent to a partner one by one, those of a key in the order of their times."""

    key: str
    at: str
    identity: tuple[str, ...]
    payload: tuple[str, ...]
    unless: str
    pseudonyms: tuple[str, ...] = ()
    """Columns of the payload that are sent as tokens (Pseudo-Anonymizer); the key always is."""


Write = Replace | Merge | InOrder | Copy | ByPeriod | AppearsWith | Append | Serve | Feed
