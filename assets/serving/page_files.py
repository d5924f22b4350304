"""The page statistics as files for the editors: CSV files, which Parquet files replace.

Their content system has read a CSV file of each day since before there was a lake: German headings, a semicolon between
the columns, percents with two decimals. It moves to typed files. In the shadow phase both are written from one read and
compared; from the cut-over on, only the new ones.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from blogdata.orchestration.split_files import SplitFiles
from blogdata.patterns.data_flow.exclusive_choice import Choice, Phase
from blogdata.patterns.data_flow.parallel_split import Branch
from blogdata.publish.partitions import Grain
from quality.contracts import CONTRACTS

CSV, PARQUET = "csv", "parquet"
_HEADINGS: Mapping[str, str] = {"page": "Seite", "events": "Aufrufe", "visits": "Besuche", "users": "Besucher"}
_PERCENT = "Anteil in Prozent"
COMPARED = pa.schema(
    [
        ("page", pa.string()),
        ("events", pa.int64()),
        ("visits", pa.int64()),
        ("users", pa.int64()),
        ("share", pa.float64()),
    ]
)
"""What both files tell, as it is compared."""


def to_csv(rows: pa.Table) -> bytes:
    """Write the rows as the content system expects them: UTF-8, quoted where needed, the most read page first."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
    writer.writerow([*_HEADINGS.values(), _PERCENT])
    for row in sorted(rows.to_pylist(), key=lambda row: (-row["events"], row["page"])):
        writer.writerow([*(row[name] for name in _HEADINGS), f"{row['share'] * 100:.2f}"])
    return text.getvalue().encode()


def from_csv(content: bytes) -> pa.Table:
    """Parse a CSV file as the content system does."""
    rows = [
        {
            "page": row[_HEADINGS["page"]],
            **{name: int(row[_HEADINGS[name]]) for name in ("events", "visits", "users")},
            "share": float(row[_PERCENT]) / 100,
        }
        for row in csv.DictReader(io.StringIO(content.decode(), newline=""), delimiter=";")
    ]
    return pa.Table.from_pylist(rows, schema=COMPARED)


def to_parquet(rows: pa.Table) -> bytes:
    """Write the rows with all columns of gold.page_stats and their types."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return bytes(sink.getvalue())


def from_parquet(content: bytes) -> pa.Table:
    """Read the columns of a Parquet file that both files have."""
    return pq.read_table(pa.BufferReader(content), columns=COMPARED.names).cast(COMPARED)


CHOICE = Choice(
    grain=Grain.DAY,
    phases=(
        Phase(name="csv only", branches=(CSV,)),
        Phase(name="shadow", branches=(CSV, PARQUET), since="2026-01-01"),
        Phase(name="parquet only", branches=(PARQUET,), since="2027-01-01"),
    ),
)
page_files = SplitFiles(
    name="page_stats",
    contract=CONTRACTS["gold.page_stats"],
    choice=CHOICE,
    branches=(
        Branch(name=CSV, file="page_stats.csv", encode=to_csv, decode=from_csv),
        Branch(name=PARQUET, file="page_stats.parquet", encode=to_parquet, decode=from_parquet),
    ),
    key=("page",),
    # Percents have two decimals.
    tolerances={"share": 0.00005001},
    owner="team:analytics",
)
