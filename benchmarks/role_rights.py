"""(t) What the rights of a role cost a query: masks and conditions on the lake, grants and policies in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import psycopg
from pyspark.sql import functions as F

from benchmarks import weekly_rows
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, interleaved, ratio, say
from blogdata.operations.role_sight import offer_masks
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, grants, restricted
from blogdata.services import postgres, postgres_roles
from quality.contracts import EVERY

STANDARD_VISITS = 100_000
PAGES = 500
VISITS, COUNTS = weekly_rows.CONTRACT, EVERY["gold.page_stats"]
SCHEMA = "bench"


def measure(bench: Bench, size: Size) -> Result:
    """Measure with about this many page views of four weeks, and with as many rows of PostgreSQL."""
    visits = size.visits or STANDARD_VISITS
    say(f"queries of {visits:,} rows as each role, {size.rounds} rounds")
    cases = [_on_the_lake(bench, visits, size.rounds), _in_postgresql(bench, visits, size.rounds)]
    return Result(letter="t", title="The rights of a role", cases=cases)


def _on_the_lake(bench: Bench, visits: int, rounds: int) -> Case:
    path = str(bench.folder("roles") / "visits")
    made = weekly_rows.make(bench, visits)
    made.rows.write.format("delta").mode("overwrite").save(path)
    offer_masks(bench.spark, bench.settings)
    stored = bench.spark.read.format("delta").load(path)

    def ask(role: Role, column: str) -> None:
        restricted(stored, VISITS, role).groupBy("page").agg(F.countDistinct(column)).collect()

    asked = {"visits": (Role.OWNER, Role.ENGINEER, Role.ANALYST), "users": (Role.OWNER, Role.ENGINEER)}
    columns = {"visits": "visit_id", "users": "user_id"}
    queries = {
        f"{what}, {role.value}": partial(ask, role, columns[what]) for what, roles in asked.items() for role in roles
    }
    seconds = _timed(queries, rounds)
    private = stored.where("keep_private").count()
    return Case(
        name=f"the lake, {visits:,} page views",
        seconds=seconds,
        ratios=[ratio(seconds, name, f"{name.partition(',')[0]}, owner") for name in queries if "owner" not in name],
        facts={"page views": {"rows": stored.count(), "late": made.late, "private": private}},
    )


def _in_postgresql(bench: Bench, rows: int, rounds: int) -> Case:
    superuser = postgres.up(bench.settings)
    logins = {role: f"{postgres_roles.PREFIX}{role.value}" for role in (Role.ENGINEER, Role.ANALYST, Role.PARTNER)}
    with psycopg.connect(superuser, autocommit=True) as connection:
        _fill(connection, rows)
        with connection.transaction():
            for role, login in logins.items():
                _run(connection, grants([COUNTS], SCHEMA, role, login))

    def ask(address: str) -> None:
        with psycopg.connect(address) as connection:
            connection.execute(f"SELECT page, sum(events) FROM {SCHEMA}.{COUNTS.name} GROUP BY page").fetchall()

    readers = {role.value: postgres.address_of(bench.settings, login).complete() for role, login in logins.items()}
    addresses = {"superuser": superuser, **readers}
    seconds = _timed({name: partial(ask, address) for name, address in addresses.items()}, rounds)
    postgres.stop(bench.settings)
    return Case(
        name=f"PostgreSQL, {rows:,} rows",
        seconds=seconds,
        ratios=[ratio(seconds, name, "superuser") for name in readers],
    )


def _timed(queries: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    def run(query: Callable[[], None], number: int) -> None:
        query()

    return interleaved(
        [Peer(name=name, run=partial(run, query)) for name, query in queries.items()], rounds, warm_ups=1
    )


def _fill(connection: psycopg.Connection, rows: int) -> None:
    """Make a table of counts: one row in five is of fewer visitors than a partner sees."""
    table = f"{SCHEMA}.{COUNTS.name}"
    columns = (
        "event_date text, page text, events bigint, visits bigint, users bigint, share double precision, "
        "hours_present integer"
    )
    values = f"'2026-01-05', '/page/' || n % {PAGES}, n % 50, 1, n % 20 + 1, 0.5, 24"
    _run(
        connection,
        [
            f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
            f"DROP TABLE IF EXISTS {table}",
            f"CREATE TABLE {table} ({columns})",
            f"INSERT INTO {table} SELECT {values} FROM generate_series(1, {rows}) AS n",
            f"VACUUM ANALYZE {table}",
        ],
    )


def _run(connection: psycopg.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement.encode())
