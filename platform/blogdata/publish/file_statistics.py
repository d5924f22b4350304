"""The columns of which Delta's log, and the footers of data files, have statistics.

Pattern: Metadata Enhancer (:mod:`blogdata.patterns.storage.metadata_enhancer`).
"""

from __future__ import annotations

from blogdata.errors import ConfigurationError
from blogdata.publish.contract import Contract

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
    persons = {column.name for column in contract.columns if column.of_a_person}
    able = [
        column.name
        for column in contract.columns
        if column.name not in {partition, *persons} and not column.type.upper().startswith(_UNORDERED)
    ]
    if unable := sorted(set(contract.statistics) - {*able, partition}):
        named = (f"{name} (identifies a person)" if name in persons else name for name in unable)
        raise ConfigurationError(
            what=f"columns that cannot have statistics: {', '.join(named)}",
            where=f"{contract.dataset}, statistics of the contract",
            next_step=f"choose from: {', '.join(able)}",
        )
    kept = ",".join(name for name in contract.statistics if name != partition)
    without = {f"{FOOTER}{column.name}": "false" for column in contract.columns if column.name in persons}
    if not kept and without:
        return {"delta.dataSkippingNumIndexedCols": "0", **without}
    return {"delta.dataSkippingStatsColumns": kept, **without} if kept else {}
