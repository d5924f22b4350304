"""The columns of which Delta's log, and the footers of data files, have statistics.

Pattern: Metadata Enhancer (:mod:`blogdata.patterns.storage.metadata_enhancer`).
"""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.errors import ConfigurationError
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Column

FOOTER = "parquet.column.statistics.enabled#"
"""Prefix of the table property by which Spark's writer leaves the statistics of a column out of a file's footer. Delta
hands a table's properties to the writer; it does not hand the options of a write."""
_UNORDERED = ("BINARY", "BOOLEAN", "ARRAY", "MAP", "STRUCT", "VARIANT")


def properties(contract: Contract) -> dict[str, str]:
    """Build the table properties that make Delta collect statistics of the contract's `statistics` columns only.

    A column that identifies a person has none: the least and greatest value of each file would stay in the log, which
    is read by everybody and outlives the rows, and would be in the file's footer, which a reader of any other column
    opens. If the contract names no columns and has such ones, the log has no statistics; otherwise Delta's default
    applies, the first 32 columns.
    """
    partition = contract.partition_column
    able = [column.name for column in contract.columns if column.name != partition and _is_able(column)]
    _refuse(contract, set(contract.statistics) - {*able, partition}, able)
    kept = ",".join(name for name in contract.statistics if name != partition)
    without = {f"{FOOTER}{column.name}": "false" for column in contract.columns if column.of_a_person}
    if not kept and without:
        return {"delta.dataSkippingNumIndexedCols": "0", **without}
    return {"delta.dataSkippingStatsColumns": kept, **without} if kept else {}


def _is_able(column: Column) -> bool:
    return not column.of_a_person and not column.type.upper().startswith(_UNORDERED)


def _refuse(contract: Contract, unable: Iterable[str], able: Iterable[str]) -> None:
    persons = {column.name for column in contract.columns if column.of_a_person}
    if wrong := [f"{name} (identifies a person)" if name in persons else name for name in sorted(unable)]:
        raise ConfigurationError(
            what=f"columns that cannot have statistics: {', '.join(wrong)}",
            where=f"{contract.dataset}, statistics of the contract",
            next_step=f"choose from: {', '.join(able)}",
        )
