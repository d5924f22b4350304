"""What the reader of a landed line returns, whichever format the line has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

Values = tuple[object, ...]
"""One value for each column of a reader's schema; of a rejected line any may be None but the reasons."""


class LineReader(Protocol):
    """Reads landed lines; picklable, so that Spark's workers have the same one."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that a line becomes; `reasons` LIST<STRING> is one of them, empty for a usable line."""
        ...

    def has_state(self, file: str) -> bool:
        """Return whether lines of a file depend on earlier ones (a header): such a file is read as a whole."""
        ...

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        """Begin a file, by its name relative to the landing zone and the key of its partition.

        Returns:
            What reads its lines, in their order, by byte offset and bytes without the line feed.
        """
        ...
