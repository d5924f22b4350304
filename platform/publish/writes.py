"""How the rows of a dataset get into its table; a contract declares one of these."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from publish.partitions import Grain


@dataclass(frozen=True, kw_only=True)
class Replace:
    """Partitions, or the whole table, are replaced (Data Overwrite)."""


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Rows change one by one (Merger): a changed row is marked where it is, and its file is not copied."""


@dataclass(frozen=True, kw_only=True)
class InOrder:
    """Executions, one a period, build on one another in their order (Stateful Merger).

    Args:
        period: Length of the period of an execution.
        replay_limit: How many later executions may follow from one that runs again, unless they are asked for, too.
        marks_rows: A changed row is marked where it is, and its file is not copied.
    """

    period: Grain
    replay_limit: int | None = None
    marks_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Each load is an immutable copy of the whole dataset (Proxy); a replaced one is kept as long as the rows are."""


@dataclass(frozen=True, kw_only=True)
class ByPeriod:
    """Each partition is a table of its own behind one name (Fast Metadata Cleaner).

    Args:
        kept: How long a replaced table is kept: nobody reads one version for longer.
    """

    kept: timedelta


@dataclass(frozen=True, kw_only=True)
class AppearsWith:
    """Rows appear with those of another dataset, in its commits (Transactional Writer).

    Args:
        main: The dataset whose commits publish this one.
    """

    main: str


@dataclass(frozen=True, kw_only=True)
class Append:
    """A stream adds its batches.

    Args:
        stream: Name of the stream.
    """

    stream: str


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Partitions are handed to a database, in which the tables of its inputs are replaced together.

    Args:
        schema: Of the tables.
    """

    schema: str


Write = Replace | Merge | InOrder | Copy | ByPeriod | AppearsWith | Append | Serve
