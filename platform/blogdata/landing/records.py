"""What the reader of a landed line returns, whichever format the line has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from blogdata.contract.contract import Contract
from blogdata.contract.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

Values = tuple[object, ...]
"""One value for each column of a reader; of a rejected line any may be None but the reasons."""
_PLACE = ("raw", "source_file", "source_offset", "arrival_hour", "load_date")


class LineReader(ABC):
    """Reads landed lines into the columns of a contract; picklable, so that Spark's workers have the same one."""

    contract: ClassVar[Contract]
    """The dataset of the lines. `reasons` LIST<STRING> is one of its columns, empty for a usable line."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that a line becomes: those of the contract, in this order, but for the line and its place."""
        return tuple(column for column in self.contract.columns if column.name not in _PLACE)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        types = {
            "STRING": pa.string(),
            "BOOLEAN": pa.bool_(),
            "BIGINT": pa.int64(),
            "TIMESTAMP": pa.timestamp("us", "UTC"),
            "ARRAY<STRING>": pa.list_(pa.string()),
        }
        return pa.schema([(column.name, types[column.type]) for column in self.columns])

    @abstractmethod
    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        """Return what reads the lines of a file in their order, by byte offset and bytes without the line feed."""
