"""The peer of (e): the same tables from the same landing zone by DuckDB, written as Delta by delta-rs.

One process, no server, no Java: `python -m benchmarks.duckdb_job LANDING LAKE MEMORY`. Lines are cut from the files in
Python, everything else is SQL on DuckDB's own tables in a file of its own; each result is written to Delta once for the
whole span, and read from DuckDB, not from Delta, by what comes next. Every line is parsed once; Spark's jobs parse it
once for bronze and once for silver.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks import duckdb_ads as ads
from benchmarks import duckdb_sql as sql
from benchmarks import duckdb_visitors as visitors
from benchmarks import straight_places

LINES = pa.schema(
    [
        pa.field("raw", pa.binary()),
        pa.field("source_file", pa.string()),
        pa.field("source_offset", pa.int64()),
        pa.field("part", pa.string()),
    ]
)
PLACES = pa.schema(
    (name, pa.timestamp("us", "UTC") if name in straight_places.TIMES else pa.string())
    for name in straight_places.COLUMNS
)
LATENESS = timedelta(minutes=15)
DIMENSIONS = ("all", "page", "referral_host", "device_type", "country")


class Job:
    """The whole job, from a landing zone to a lake."""

    def __init__(self, landing: Path, lake: Path, *, memory: str) -> None:
        self._landing = landing
        self._lake = lake
        settings: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
        self._database = lake / "job.duckdb"
        self._db = duckdb.connect(str(self._database), config=settings)
        self._db.execute("SET TimeZone = 'UTC'")
        self._db.execute("SET enable_progress_bar = false")

    def run(self) -> None:
        """Compute bronze, silver and gold, then remove the work file."""
        self._users()
        self._devices()
        self._arrivals()
        self._event_hours()
        self._ads()
        self._visitors()
        for table, (query, partition) in sql.GOLD.items():
            self._write(query, table, partition)
        self._db.close()
        self._database.unlink()

    def _users(self) -> None:
        self._load("users", sql.USERS)
        self._write("SELECT * FROM users", "bronze/users", "load_date")
        self._db.execute(f"CREATE TABLE user_versions AS {sql.USER_VERSIONS}")
        self._write(sql.IDENTITIES, "silver/identities")
        self._write("SELECT * FROM user_versions", "silver/users")
        self._write(sql.USERS_CURRENT, "silver/users_current")

    def _devices(self) -> None:
        self._load("devices", sql.DEVICES)
        self._write("SELECT * FROM devices", "bronze/devices")
        self._db.execute(f"CREATE TABLE known_devices AS {sql.KNOWN_DEVICES}")
        self._write("SELECT * FROM known_devices", "silver/devices")

    def _arrivals(self) -> None:
        self._load("visits", sql.VISITS)
        self._write(sql.BRONZE_VISITS, "bronze/visits", "arrival_hour")
        self._write(sql.DEAD_LETTERS, "bronze/dead_letters", "arrival_hour")
        self._db.execute(f"CREATE TABLE marks AS {sql.MARKS}", {"lateness": LATENESS})
        self._write(sql.LATE_VISITS, "silver/late_visits", "arrival_hour")

    def _event_hours(self) -> None:
        self._db.execute(f"CREATE TABLE ranked AS {sql.RANKED}")
        self._write(sql.SILVER_VISITS, "silver/visits", "event_hour")
        self._write(sql.VISIT_CONFLICTS, "silver/visit_conflicts", "event_hour")
        self._places()
        self._db.execute(f"CREATE TABLE enriched AS {sql.ENRICHED}")
        self._write("SELECT * FROM enriched", "silver/visits_enriched", "event_hour")
        self._db.execute(f"CREATE TABLE sessions AS {visitors.STATES}")
        self._write(visitors.SESSIONS, "silver/sessions", "event_hour")
        self._write(visitors.PENDING, "silver/sessions_pending", "event_hour")

    def _places(self) -> None:
        asked = "SELECT DISTINCT ip FROM visits JOIN ranked ON visits.rowid = place WHERE rank = 1 AND ip IS NOT NULL"
        answers = straight_places.answers([ip for (ip,) in self._db.sql(asked).fetchall()])
        columns = zip(straight_places.COLUMNS, zip(*answers, strict=True), strict=True)
        self._db.register("answers", pa.table(dict(columns)).cast(PLACES))
        self._db.execute("CREATE TABLE places AS SELECT * FROM answers")
        self._write("SELECT * FROM places", "silver/places")

    def _ads(self) -> None:
        self._load("ads", ads.ADS)
        self._write(ads.BRONZE, "bronze/ads", "arrival_hour")
        self._write(ads.DEAD_LETTERS, "bronze/ad_dead_letters", "arrival_hour")
        self._db.execute(f"CREATE TABLE displays AS {ads.RANKED}")
        self._write(ads.SILVER, "silver/ads", "display_hour")
        self._write(ads.CONFLICTS, "silver/ad_conflicts", "display_hour")
        self._db.execute(f"CREATE TABLE joined AS {ads.WITH_VISITS}")
        self._write("SELECT * FROM joined", "silver/visits_with_ads", "event_hour")
        self._write(ads.STATS, "gold/campaign_stats", "event_date")
        self._db.register("sketches", self._sketches(ads.VISITORS, "event_hour", "campaign"))
        self._write(ads.AUDIENCE, "gold/campaign_audience_hourly", "event_hour")

    def _visitors(self) -> None:
        self._write(visitors.OF_DAYS, "gold/sessions_daily", "event_date")
        self._write(visitors.REPORT, "gold/daily_report", "event_date")
        by = ("event_hour", "dimension", "value")
        found = [self._sketches(visitors.visitors(dimension), *by) for dimension in DIMENSIONS]
        self._db.register("audience", pa.concat_tables(found))
        self._write("SELECT * FROM audience", "gold/audience_hourly", "event_hour")

    def _sketches(self, query: str, *by: str) -> pa.Table:
        rows = (
            row
            for batch in self._db.sql(query).to_arrow_reader(100_000)
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        found = list(visitors.sketched(rows))
        return pa.table(dict(zip((*by, "events", "visitors"), zip(*found, strict=True), strict=True)))

    def _load(self, table: str, query: str) -> None:
        landed = pa.RecordBatchReader.from_batches(LINES, self._lines(table))
        self._db.register("landed", landed)
        self._db.execute(f"CREATE TABLE {table} AS {query}")
        self._db.unregister("landed")

    def _lines(self, table: str) -> Iterator[pa.RecordBatch]:
        for file in sorted((self._landing / table).glob("date=*/**/*.*")):
            lines = file.read_bytes().split(b"\n")
            if not lines[-1]:
                lines.pop()
            parts = [folder.name.split("=")[1] for folder in reversed(file.parents) if "=" in folder.name]
            offsets = [0]
            for line in lines[:-1]:
                offsets.append(offsets[-1] + len(line) + 1)
            name = pa.repeat(file.relative_to(self._landing).as_posix(), len(lines))
            part = pa.repeat("T".join(parts), len(lines))
            columns = [pa.array(lines, pa.binary()), name, pa.array(offsets[: len(lines)], pa.int64()), part]
            yield pa.record_batch(columns, schema=LINES)

    def _write(self, query: str, table: str, partition: str | None = None) -> None:
        rows = self._db.sql(query).to_arrow_reader(100_000)
        folder = str(self._lake / table)
        write_deltalake(folder, rows, mode="overwrite", partition_by=[partition] if partition else None)


def main(arguments: Sequence[str]) -> None:
    """Run the job once."""
    landing, lake, memory = arguments
    Job(Path(landing), Path(lake), memory=memory).run()


if __name__ == "__main__":
    main(sys.argv[1:])
