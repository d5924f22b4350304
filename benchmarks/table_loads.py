"""`python -m benchmarks.table_loads`: a table landed in full, beside `COPY` to a file and DuckDB's reader.

Each is measured in a process of its own: seconds, and how much the process grew (MiB). The server is PostgreSQL in a
temporary home, or that of `--url`, in which a table `benchmark_devices` is made.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from blogdata.patterns.ingestion import full_loader
from blogdata.services import config, postgres
from quality.contracts import landed

TABLE = "benchmark_devices"


def platform(url: str, folder: Path) -> None:
    """Land the table as the platform does."""
    with psycopg.connect(url) as connection:
        full_loader.land(connection, TABLE, landed.DEVICE, folder / "devices" / "date=2026-01-05", folder)


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
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
        try:
            peer(url, Path(folder))
        except Exception as error:  # noqa: BLE001 - that a peer is not there is an answer
            answers.put({"not measured": str(error).partition("\n")[0]})
            return
        seconds = time.monotonic() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    answers.put({"seconds": round(seconds, 2), "grown_mib": round(grown, 1)})


def _fill(url: str, rows: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        connection.execute(
            f"CREATE TABLE {TABLE} AS SELECT 'type-' || n % 7 AS type, 'Device number ' || n AS full_name,"
            f" n::text AS version FROM generate_series(1, {rows}) n"
        )
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
            for peer in (platform, copy, duckdbs_reader):
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
