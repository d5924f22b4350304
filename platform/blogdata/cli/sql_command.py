"""`blogdata sql`: SQL over the lake's tables as `layer.table`, the newest state or an earlier one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from blogdata.cli.output import (
    NOTHING_PUBLISHED,
    Json,
    TextGrid,
    console,
    errors,
    existing,
    is_new,
    moment,
    not_published,
    say_json,
)
from blogdata.deliver.query import NotPublished, Query, RoleSight, rows_of
from blogdata.errors import ConfigurationError
from blogdata.operate import spark_attached
from blogdata.operate.config import Settings
from blogdata.patterns.security import encryptor
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role
from blogdata.table import faults
from blogdata.table.lake import Lake


def sql(
    query: Annotated[str, typer.Argument(help="For instance: SELECT page, events FROM gold.page_stats LIMIT 10")],
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="State at this time: 2026-01-05 or 2026-01-05T03:00:00 (UTC)")
    ] = None,
    limit: Annotated[int, typer.Option(help="Most rows to print", min=1)] = 1000,
    role: Annotated[Role | None, typer.Option("--as", help="See what this role sees, and nothing else")] = None,
    as_json: Json = False,
) -> None:
    """Query the lake's tables as layer.table."""
    settings = existing()
    at = moment(as_of, "--as-of") if as_of else None
    sight = None if role in (None, Role.OWNER) else RoleSight(role=role, settings=settings)
    lake = Lake(root=str(settings.lake))
    try:
        asked = Query.of(lake, query, at, sight, keys=settings if sight is None else None)
    except NotPublished as error:
        raise not_published(lake, error.where) from error
    if is_new(settings):
        # Nothing to query is worth starting Spark.
        raise ConfigurationError(what="there are no tables yet", where=str(settings.lake), next_step=NOTHING_PUBLISHED)
    with _explained(query, asked.names, settings), spark_attached.guarded(settings) as spark:
        frame = asked.frame(spark)
        columns, rows = frame.columns, rows_of(frame, limit + 1)
    more = f" (only the first {limit:,}; see --limit)" if len(rows) > limit else ""
    del rows[limit:]
    if as_json:
        say_json([dict(zip(columns, row, strict=True)) for row in rows])
        if more:
            errors.print(f"{len(rows):,} rows{more}")
        return
    table = TextGrid()
    for column in columns:
        table.add_column(column, no_wrap=True)
    # A plan is many lines of Spark's own; a line feed in any other value is shown as one.
    plan = query.lstrip().lower().startswith("explain")
    for row in rows:
        cells = [_cell(value) for value in row]
        table.add_row(*(cell.splitlines() if plan else cell for cell in cells))
    console.print(table)
    console.print(f"{len(rows):,} rows{more}")


@contextmanager
def _explained(query: str, names: Collection[str], settings: Settings) -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        typed = faults.of_the_store(str(error), f"'{query.strip()[:200]}'")
        typed = typed or encryptor.explained(str(error), settings.home / "secrets")
        if typed is not None:
            raise typed from error
        described = min(names, default="silver.visits")
        lines = str(error).split("JVM stacktrace:")[0].strip().splitlines()
        raise ConfigurationError(
            what=lines[0] if lines else type(error).__name__,
            where=f"'{query.strip()[:200]}'",
            next_step=f'mend the query; columns of a table: blogdata sql "DESCRIBE {described}"',
        ) from error


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)
