"""The same tables from the same landing zone by DuckDB, written as Delta by delta-rs: the peer without Spark.

One process, no server, no Java: `python -m benchmarks.duckdb_job LANDING LAKE MEMORY`. Lines are cut from
the files in Python and parsed once; everything else is :mod:`benchmarks.straight_sql` on tables of DuckDB's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from datasketches import hll_sketch
from deltalake import write_deltalake

from benchmarks.straight_sql import ADDRESSES, TABLES, TECHNICAL, WITH_PLACES, hour_of, iso_time, landed, places

WORDS_OF_SPARK = (
    "array_join(x, separator) AS array_to_string(x, separator)",
    "explode(x) AS unnest(x)",
    "get_json_object(x, path) AS json_extract_string(x, path)",
    "hll_sketch_agg(x, lg_k) AS sketch(list(DISTINCT x))",
    "max_by(x, y) AS arg_max_null(x, y)",
    "min_by(x, y) AS arg_min_null(x, y)",
    "regexp_like(x, pattern) AS regexp_matches(x, pattern)",
    "regexp_replace(x, pattern, y) AS system.main.regexp_replace(x, pattern, y, 'g')",
    "sequence(x, y, step) AS generate_series(x, y, step)",
    "sha2(x, bits) AS sha256(x)",
    "size(x) AS len(x)",
    "slice(x, place, number) AS x[place:place + number - 1]",
    "struct(a, b, c, d) AS {'arrival_hour': a, 'replayed': b, 'source_file': c, 'source_offset': d}",
    "to_timestamp(x) AS CAST(x AS TIMESTAMPTZ)",
    "try_to_timestamp(x) AS TRY_CAST(x AS TIMESTAMPTZ)",
    "unix_micros(x) AS epoch_us(x)",
    "xxhash64(x) AS hash(x)",
)
LINES = pa.schema(
    [("raw", pa.binary()), ("source_file", pa.string()), ("source_offset", pa.int64()), ("part", pa.string())]
)
MOST_BYTES = 1_048_576
IDENTIFIERS = ("ad_id", "user_id", "visit_id")
KINDS = {"keep_private": "BOOLEAN", **dict.fromkeys(("context", "context.user", "context.technical"), "OBJECT")}
"""Path to its type in JSON; others are texts."""
SHAPE = rf"""CASE
    WHEN octet_length(raw) > {MOST_BYTES} THEN 'too_large'
    WHEN octet_length(raw) = 0 OR regexp_full_match(text, '\s*') THEN 'empty_line'
    WHEN text IS NULL THEN 'not_utf8'
    WHEN regexp_matches(text, '^\s*\{{"') AND NOT regexp_matches(text, '\}}\s*$') THEN 'truncated'
    ELSE 'not_json' END"""


def judged(table: str, required: Sequence[str], optional: Sequence[str] = ()) -> str:
    """Query each landed line of a table with its columns, those of valid lines, and all reasons for rejection."""
    paths = (*required, *optional)
    found = {path: f"found[{number}]" for number, path in enumerate(paths, 1)}
    kinds = {path: f"kinds[{number}]" for number, path in enumerate(paths, 1)}
    times = {path: path.split(".")[-1] for path in paths if path.endswith(("_time", "_since"))}
    columns = {path.split(".")[-1]: found[path] for path in paths if path not in KINDS} | {
        name: name for name in times.values()
    }
    if "keep_private" in paths:
        columns["keep_private"] = f"coalesce(CAST({found['keep_private']} AS BOOLEAN), true)"
    time, *_ = times
    columns[time.replace("_time", "_hour")] = hour_of(time)
    rules = []
    for path in paths:
        if path in required:
            blank = f" OR trim({found[path]}, ' ') = ''" if path in IDENTIFIERS else ""
            rules.append((f"missing_field:{path}", f"coalesce({kinds[path]}, 'NULL') = 'NULL'{blank}"))
        rules.append((f"wrong_type:{path}", f"{kinds[path]} NOT IN ('{KINDS.get(path, 'VARCHAR')}', 'NULL')"))
    rules += [(f"invalid_time:{path}", f"{kinds[path]} = 'VARCHAR' AND {name} IS NULL") for path, name in times.items()]
    end = "to_timestamp(part || ':00:00Z') + INTERVAL 65 MINUTES"
    rules.append(("impossible_time", f"{time} < TIMESTAMPTZ '2000-01-01 00:00:00Z' OR {time} > {end}"))
    broken = ", ".join(f"CASE WHEN {rule} THEN '{reason}' END" for reason, rule in rules)
    return f"""
WITH documents AS (
    SELECT *, CASE WHEN json_valid(text) AND json_type(text) = 'OBJECT' THEN text::JSON END AS document
    FROM landed_{table}
), looked AS (
    SELECT *, json_extract_string(document, {[f"$.{path}" for path in paths]}) AS found,
        json_type(document, {[f"$.{path}" for path in paths]}) AS kinds
    FROM documents
), timed AS (
    SELECT *, {", ".join(f"{iso_time(found[path])} AS {name}" for path, name in times.items())} FROM looked
), judged AS (
    SELECT *, CASE WHEN document IS NULL THEN [{SHAPE}]
        ELSE list_filter([{broken}], lambda reason: reason IS NOT NULL) END AS reasons
    FROM timed
)
SELECT raw, source_file, source_offset, part AS arrival_hour, reasons,
    {", ".join(f"CASE WHEN len(reasons) = 0 THEN {column} END AS {name}" for name, column in columns.items())}
FROM judged
"""


JUDGED = {
    "visits": judged(
        "visits",
        ("visit_id", "event_time", "user_id", "page"),
        (
            *("keep_private", "context", "context.referral", "context.ad_id", "context.user", "context.user.ip"),
            *("context.user.login", "context.user.connected_since", "context.technical"),
            *(f"context.technical.{name}" for name in TECHNICAL),
        ),
    ),
    "ads": judged("ads", ("ad_id", "page", "visit_id", "display_time", "campaign")),
}


class Job:
    """The whole job, from a landing zone to a lake."""

    def __init__(self, landing: Path, lake: Path, *, memory: str) -> None:
        self._landing, self._lake = landing, lake
        settings: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
        self._database = lake / "job.duckdb"
        self._db = duckdb.connect(str(self._database), config=settings)
        self._db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        self._db.create_function("sketch", _sketch, ["VARCHAR[]"], "BLOB")
        for word in WORDS_OF_SPARK:
            self._db.execute(f"CREATE MACRO {word}")

    def run(self) -> None:
        """Compute bronze, silver and gold, then remove the work file."""
        text = f"CASE WHEN octet_length(raw) <= {MOST_BYTES} THEN TRY(decode(raw)) END AS text"
        for table in ("users", "devices", *JUDGED):
            # The files are read when bronze is computed from the view.
            self._db.register(f"lines_{table}", pa.RecordBatchReader.from_batches(LINES, self._lines(table)))
            self._db.execute(f"CREATE TEMP VIEW landed_{table} AS SELECT *, {text} FROM lines_{table}")
        for table, judge in JUDGED.items():
            self._db.execute(f"CREATE TEMP VIEW judged_{table} AS {judge}")
        for name, query in TABLES.items():
            self._compute(name, *query)
        answers = places([ip for (ip,) in self._db.sql(ADDRESSES).fetchall()])
        columns = dict(zip(("ip", "outcome", "country"), zip(*answers, strict=True), strict=True))
        self._db.register("addresses", pa.table(columns))
        for name, query in WITH_PLACES.items():
            self._compute(name, *query)
        self._db.close()
        self._database.unlink()

    def _compute(self, name: str, query: str, partition: str | None = None) -> None:
        self._db.execute(f"CREATE TABLE {name.replace('.', '_')} AS {query}")
        if "." in name:
            self._write(name, partition)

    def _write(self, name: str, partition: str | None) -> None:
        rows = self._db.sql(f"FROM {name.replace('.', '_')}").to_arrow_reader(100_000)
        folder = str(self._lake / name.replace(".", "/"))
        write_deltalake(folder, rows, mode="overwrite", partition_by=[partition] if partition else None)

    def _lines(self, table: str) -> Iterator[pa.RecordBatch]:
        for part, file in landed(self._landing, table):
            lines = file.read_bytes().split(b"\n")
            if not lines[-1]:
                lines.pop()
            offsets = [0]
            for line in lines[:-1]:
                offsets.append(offsets[-1] + len(line) + 1)
            name = pa.repeat(file.relative_to(self._landing).as_posix(), len(lines))
            columns = [pa.array(lines, pa.binary()), name, pa.array(offsets[: len(lines)], pa.int64())]
            yield pa.record_batch([*columns, pa.repeat(part, len(lines))], schema=LINES)


def _sketch(visitors: list[str]) -> bytes:
    sketch = hll_sketch(12)
    for visitor in visitors:
        if visitor is not None:
            sketch.update(visitor)
    return bytes(sketch.serialize_compact())


if __name__ == "__main__":
    Job(Path(sys.argv[1]), Path(sys.argv[2]), memory=sys.argv[3]).run()
