"""`python -m benchmarks.table_loads`: a table landed whole and by hours, beside `COPY` to a file and DuckDB's reader.

Each is measured in a process of its own: seconds, and how much the process grew (MiB). The server is PostgreSQL in a
temporary home, or that of `--url`, in which a table `benchmark_devices` is made.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg

from blogdata.patterns.ingestion import full_loader, incremental_loader
from blogdata.patterns.ingestion.incremental_loader import DeltaTable
from blogdata.publish.partitions import Grain, key_of
from blogdata.services import config, postgres
from quality.contracts import landed

TABLE = "benchmark_devices"
BEGIN, HOURS = datetime(2026, 1, 5, tzinfo=timezone.utc), 100
"""First hour of the rows, and over how many hours they are spread."""


def platform(url: str, folder: Path) -> None:
    """Land the table as the platform does."""
    with psycopg.connect(url) as connection:
        full_loader.land(connection, TABLE, landed.DEVICE, folder / "devices" / "date=2026-01-05", folder)


def windows(url: str, folder: Path) -> None:
    """Land the rows of the table by their hours, all of them."""
    _by_hours(url, folder, HOURS)


def one_window(url: str, folder: Path) -> None:
    """Land the rows of one hour."""
    _by_hours(url, folder, 1)


def _by_hours(url: str, folder: Path, hours: int) -> None:
    table = DeltaTable(
        name=TABLE,
        delta="at",
        key=("version",),
        announced=landed.DEVICE,
        shape={name: name for name in ("type", "full_name", "version", "at")},
        prefix="benchmark",
        grain=Grain.HOUR,
    )
    last = key_of(BEGIN + timedelta(hours=hours - 1), Grain.HOUR)
    with psycopg.connect(url) as connection:
        incremental_loader.load(
            connection, table, folder / "visits", key_of(BEGIN, Grain.HOUR), last, now=BEGIN + timedelta(hours=HOURS)
        )


def copy(url: str, folder: Path) -> None:
    """Copy the table to a file of CSV."""
    query = f"COPY {TABLE} TO STDOUT (FORMAT csv)"
    with (
        psycopg.connect(url) as connection,
        (folder / "copy.csv").open("wb") as file,
        connection.cursor().copy(query) as rows,
    ):
        for row in rows:
            file.write(row)


def duckdbs_reader(url: str, folder: Path) -> None:
    """Copy the table to a file of JSON lines by DuckDB's extension for PostgreSQL, if it can be installed."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("INSTALL postgres; LOAD postgres")
        connection.execute(f"ATTACH '{url}' AS source (TYPE postgres, READ_ONLY)")
        connection.execute(f"COPY (FROM source.{TABLE}) TO '{folder / 'duckdb.json'}' (FORMAT json)")


def _measured(peer: Callable[[str, Path], None], url: str, answers: multiprocessing.Queue[object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # From here on the peak is that of the peer; before, it may be that of an import, or of the parent.
        Path("/proc/self/clear_refs").write_text("5")
        before, begun = _peak(), time.monotonic()
        try:
            peer(url, Path(folder))
        except Exception as error:  # noqa: BLE001 - that a peer is not there is an answer
            answers.put({"not measured": str(error).partition("\n")[0]})
            return
        seconds = time.monotonic() - begun
    answers.put({"seconds": round(seconds, 2), "grown_mib": round((_peak() - before) / 1024, 1)})


def _peak() -> int:
    """Return the most memory this process has had, KiB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def _fill(url: str, rows: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        connection.execute(
            f"CREATE TABLE {TABLE} AS SELECT 'type-' || n % 7 AS type, 'Device number ' || n AS full_name,"
            f" n::text AS version, '{BEGIN.isoformat()}'::timestamptz + n * interval '{HOURS} hours' / {rows + 1} AS at"
            f" FROM generate_series(1, {rows}) n"
        )
        connection.execute(f"CREATE INDEX ON {TABLE} (at)")
        connection.execute(f"VACUUM ANALYZE {TABLE}")


def main() -> None:
    """Measure all peers and print one JSON document."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--url", default=None)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as home:
        settings = config.load(overrides={"BLOGDATA_HOME": home})
        url = asked.url or postgres.up(settings)
        try:
            _fill(url, asked.rows)
            found: dict[str, object] = {"rows": asked.rows}
            context = multiprocessing.get_context("spawn")
            for peer in (platform, windows, one_window, copy, duckdbs_reader):
                answers: multiprocessing.Queue[object] = context.Queue()
                process = context.Process(target=_measured, args=(peer, url, answers))
                process.start()
                found[peer.__name__] = answers.get()
                process.join()
        finally:
            if asked.url is None:
                postgres.stop(settings)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
