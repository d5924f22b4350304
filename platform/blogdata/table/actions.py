"""Data files below a table, described as its log needs them: path, partition, size and statistics.

Statistics are taken from the Parquet footers, in the form of Delta's protocol ("Per-file Statistics"). A bound that is
not certain is left out: a reader skips files by bounds, so a wrong one hides rows, and a missing one costs a read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyarrow.fs import FileSelector, FileSystem

_INDEXED, _INDEXED_COLUMNS = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
"""Table properties that name, or count, the columns with statistics; without both the first 32 have some."""
_PREFIX = 32
"""Signs of a text that are kept in a bound, as Delta's own writers do."""
_GREATEST = "\U0010ffff"
_NULL = "__HIVE_DEFAULT_PARTITION__"
_EXACT_DIGITS = 15
"""A decimal of so many digits survives the floating-point numbers of JSON."""
_LITERAL = "!$&'()+,-./:;=@_~"
_MARK = "~"


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A Parquet file below a table; its path is relative to the table, and not encoded."""

    path: str
    size: int
    rows: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    modified: int = 0

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> DataFile:
        statistics = json.loads(listed["stats"])
        return cls(
            **{name: listed[name] for name in ("path", "size", "partition_values")},
            rows=statistics["numRecords"],
            statistics=statistics,
            modified=listed["modification_time"],
        )

    def listed(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "size": self.size,
            "partition_values": dict(self.partition_values),
            "modification_time": self.modified,
            "stats": json.dumps(self.statistics),
        }

    def add(self, *, data_change: bool = True) -> AddAction:
        return AddAction(**self.listed(), data_change=data_change)


def folder_sql(column: str) -> str:
    """Return the Spark SQL that names the folder of a partition value, in ASCII and without a percent sign.

    delta-rs cannot remove a file whose path in the log is not as delta-rs itself would encode it, and says nothing:
    its rows stay. Spark writes other than ASCII signs as they are, so they must not be in a path.
    """
    return f"replace(replace(url_encode(string({column})), '*', '%2A'), '%', '{_MARK}')"


def folder_of(value: str) -> str:
    # Java, which names it in SQL, encodes the mark as well.
    return quote_plus(value).replace(_MARK, "%7E").replace("%", _MARK)


def value_sql(column: str) -> str:
    return f"url_decode(replace({column}, '{_MARK}', '%'))"


def value_of(folder: str) -> str | None:
    """Return the partition value that :func:`folder_sql` named; None for null, and for the empty text as in Delta."""
    return None if folder in (_NULL, "") else unquote_plus(folder.replace(_MARK, "%"))


def is_removable(path: str) -> bool:
    """Check whether delta-rs would write a path of the log the same way, without which its file is not removed."""
    return quote(unquote(path), safe=_LITERAL) == path


def files_below(
    files: FileSystem, folder: str, *, partition: tuple[str, str | None] | None, indexed: Collection[str]
) -> list[DataFile]:
    """List the files with rows that a write left in a folder of a table, the root of `files`; `indexed` have bounds.

    `partition` is the partition column with the value of all files, or None for that in each file's folder.
    """
    described = []
    for info in files.get_file_info(FileSelector(folder, recursive=True)):
        name = info.path.rsplit("/", 1)[-1]
        if not info.is_file or not name.endswith(".parquet") or name.startswith(("_", ".")):
            continue
        rows, statistics = footer(pq.read_metadata(info.path, filesystem=files), indexed)
        if rows:
            file = DataFile(
                path=info.path,
                size=info.size,
                rows=rows,
                partition_values=_partition_values(info.path, partition),
                statistics=statistics,
                modified=int((info.mtime_ns or 0) / 1_000_000),
            )
            described.append(file)
    return sorted(described, key=lambda file: file.path)


def _partition_values(path: str, partition: tuple[str, str | None] | None) -> dict[str, str | None]:
    if partition is None:
        return {}
    column, value = partition
    if value is not None:
        return {column: value}
    prefix = f"{column}="
    (folder,) = (part for part in path.split("/")[:-1] if part.startswith(prefix))
    return {column: value_of(folder.removeprefix(prefix))}


def indexed_columns(table: DeltaTable) -> tuple[str, ...]:
    properties = table.metadata().configuration
    partitions = table.metadata().partition_columns
    names = [column.name for column in table.schema().fields if column.name not in partitions]
    if _INDEXED in properties:
        wanted = {name.strip().strip("`") for name in (properties[_INDEXED] or "").split(",")}
        return tuple(name for name in names if name in wanted)
    most = int(properties.get(_INDEXED_COLUMNS) or 32)
    return tuple(names if most < 0 else names[:most])


def footer(metadata: pq.FileMetaData, indexed: Collection[str]) -> tuple[int, dict[str, Any]]:
    """Return the rows of a file and its statistics: `numRecords`, and for some columns nulls and bounds."""
    columns = [column for column in metadata.schema.to_arrow_schema() if not pa.types.is_nested(column.type)]
    plain = {column.name: column.type for column in columns if column.name in indexed and "." not in column.name}
    nulls: dict[str, int] = dict.fromkeys(plain, 0)
    bounds: dict[str, tuple[Any, Any]] = {}
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        chunks = (group.column(number) for number in range(group.num_columns))
        for chunk in (chunk for chunk in chunks if chunk.path_in_schema in plain):
            name, stats = chunk.path_in_schema, chunk.statistics
            if stats is None or not stats.has_null_count:
                del plain[name]
                continue
            nulls[name] += stats.null_count
            if stats.null_count == group.num_rows:
                continue
            low, high = _bounds(stats, plain[name])
            before = bounds.get(name, (low, high))
            is_known = None not in (low, high, *before)
            bounds[name] = (min(low, before[0]), max(high, before[1])) if is_known else (None, None)
    known = {name: _as_json(plain[name], *both) for name, both in bounds.items() if name in plain and None not in both}
    return metadata.num_rows, {
        "numRecords": metadata.num_rows,
        "minValues": {name: low for name, (low, _) in known.items()},
        "maxValues": {name: high for name, (_, high) in known.items()},
        "nullCount": {name: nulls[name] for name in plain},
    }


def _bounds(stats: pq.Statistics, kind: pa.DataType) -> tuple[Any, Any]:
    """Return the least and the greatest value of a column chunk; None for each that is unknown or not comparable."""
    unordered = stats.physical_type in ("INT96", "BOOLEAN")
    inexact = pa.types.is_decimal(kind) and kind.precision > _EXACT_DIGITS
    if unordered or inexact or not stats.has_min_max:
        return None, None
    try:
        low, high = stats.min, stats.max
    except (ValueError, OverflowError, pa.ArrowException):
        # A date beyond Python's, or a text that is not UTF-8.
        return None, None
    known = (int, float, str, date, datetime, Decimal)
    both_known = isinstance(low, known) and isinstance(high, known)
    finite = all(not isinstance(bound, float) or math.isfinite(bound) for bound in (low, high))
    # The last millisecond of the calendar cannot be rounded up.
    rounds = not isinstance(high, datetime) or high.year < MAXYEAR
    return (low, high) if both_known and finite and rounds else (None, None)


def _as_json(kind: pa.DataType, low: Any, high: Any) -> tuple[Any, Any]:
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        return _milliseconds(low) + zone, _milliseconds(high + timedelta(microseconds=999)) + zone
    if isinstance(low, date):
        return low.isoformat(), high.isoformat()
    if isinstance(low, Decimal):
        return float(low), float(high)
    if isinstance(low, str):
        return low[:_PREFIX], _at_least(high)
    return low, high


def _milliseconds(moment: datetime) -> str:
    utc = moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds")


def _at_least(text: str) -> str:
    """Return a short text that is not less than one that begins with it, in the order of UTF-8 bytes."""
    end = _PREFIX
    while text[end : end + 1] == _GREATEST:
        end += 1
    return text if len(text) <= end else text[:end] + _GREATEST
