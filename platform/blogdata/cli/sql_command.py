"""`blogdata sql`: SQL over the lake's tables as `layer.table`, the newest state or an earlier one."""

from __future__ import annotations

import getpass
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blogdata.cli.output import (
    NOTHING_PUBLISHED,
    TextGrid,
    console,
    errors,
    existing,
    is_new,
    moment,
    not_published,
    say_json,
)
from blogdata.cli.query_rows import QueryRows, require_read_only
from blogdata.errors import ConfigurationError, PlatformError, similar
from blogdata.evidence import column_reads, executions
from blogdata.evidence.column_reads import ColumnRead
from blogdata.evidence.events import EVENTS, EventLog
from blogdata.lake import companions, store_faults
from blogdata.lake.lake import Lake
from blogdata.lake.unneeded import READABLE
from blogdata.operations.role_sight import RoleSight
from blogdata.orchestration import encryption
from blogdata.patterns.data_value import metadata_decorator
from blogdata.patterns.data_value.metadata_decorator import PUBLICATIONS
from blogdata.patterns.error_management import checkpointer
from blogdata.patterns.error_management.checkpointer import OFFSETS_DDL, STREAM_OFFSETS
from blogdata.patterns.security import encryptor
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role
from blogdata.patterns.storage import dataset_materializer, vertical_partitioner
from blogdata.patterns.storage.dataset_materializer import VIEW
from blogdata.patterns.storage.vertical_partitioner import WHOLE
from blogdata.publish import refused
from blogdata.publish.contract import Contract
from blogdata.publish.migrations import carried
from blogdata.publish.privacy import CONSUMERS, consumer_view
from blogdata.services import spark_attached, spark_connect, spark_probe
from blogdata.services.config import Settings
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = re.compile(r"\b(bronze|silver|gold|ops|refused)\.([a-z0-9_]+)\b", re.IGNORECASE)
LITERALS = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/)""", re.DOTALL)
NAME = re.compile(r"\w+")
VERSIONS = "ops.versions"
"""Table that maps executions to table versions, for datasets executed by period."""


class QueryFailed(PlatformError):
    """Spark refused or failed a query."""

    exit_code = 2


def sql(
    query: Annotated[str, typer.Argument(help="For instance: SELECT page, events FROM gold.page_stats LIMIT 10")],
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", help="State at this time: 2026-01-05 or 2026-01-05T03:00:00 (UTC)"),
    ] = None,
    limit: Annotated[int, typer.Option(help="Most rows to print", min=1)] = 1000,
    role: Annotated[Role | None, typer.Option("--as", help="See what this role sees, and nothing else")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON")] = False,
) -> None:
    """Query the lake's tables as layer.table."""
    settings = existing()
    at = moment(as_of, "--as-of") if as_of else None
    sight = None if role in (None, Role.OWNER) else RoleSight(role=role, settings=settings)
    asked = _Asked.of(Lake(root=str(settings.lake)), query, at, sight, keys=settings if sight is None else None)
    if is_new(settings):
        # Nothing to query is worth starting Spark.
        raise ConfigurationError(what="there are no tables yet", where=str(settings.lake), next_step=NOTHING_PUBLISHED)
    server = settings if sight is None else spark_connect.of_roles(settings)
    with _explained(query, asked.names, server), session(server) as spark:
        found = QueryRows.of(asked.frame(spark), limit + 1)
    if at is None:
        _record_reads(asked, query)
    shown = found.rows[:limit]
    more = f" (only the first {limit:,}; see --limit)" if len(found.rows) > limit else ""
    if as_json:
        say_json([dict(zip(found.columns, row, strict=True)) for row in shown])
        if more:
            errors.print(f"{len(shown):,} rows{more}")
        return
    table = TextGrid(*found.columns)
    # A plan is many lines of Spark's own; a line feed in any other value is shown as one.
    plan = query.lstrip().lower().startswith("explain")
    for row in shown:
        cells = [_cell(value) for value in row]
        table.add_row(*(cell.splitlines() if plan else cell for cell in cells))
    console.print(table)
    console.print(f"{len(shown):,} rows{more}")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A query whose tables exist.

    Args:
        versions: Version of each stored table; derived tables have none.
        moment: Time of the state to read; None for the newest.
        sight: What the role sees that asks; None: everything.
        keys: Settings of the deployment whose keys decrypt what is encrypted; None: it is shown as it is stored.
    """

    lake: Lake
    query: str
    written: str
    names: Collection[str]
    versions: Mapping[str, int]
    moment: datetime | None
    sight: RoleSight | None = None
    keys: Settings | None = None

    @classmethod
    def of(
        cls,
        lake: Lake,
        query: str,
        moment: datetime | None,
        sight: RoleSight | None = None,
        *,
        keys: Settings | None = None,
    ) -> _Asked:
        """Find the tables of a query, before Spark is started.

        Raises:
            ConfigurationError: A table does not exist, or did not at that time, or the role does not see it.
        """
        # Names inside quotes and comments are text, not tables.
        parts = LITERALS.split(query)
        names = {match.group(0).lower() for part in parts[::2] for match in TABLE.finditer(part)}
        if sight is not None:
            sight.require(names)
            if moment is not None:
                sight.require_newest(names)
        # Choose all versions together, so that a dataset and its companion are read in the same state.
        versions = _versions(lake, {stored for name in names for stored in _read_by(name)}, moment)
        there = {*versions, *_derived(lake)}
        for name in sorted(names):
            dataset = _read_by(name)[0]
            if name not in there and dataset not in EVERY.keys() & versions.keys():
                if dataset in EVERY and moment is None:
                    raise not_published(lake, dataset)
                raise ConfigurationError(
                    what=f"there is no table {name}", where=lake.root, next_step=_existing(lake, name)
                )
        rewritten = "".join(
            part if index % 2 else TABLE.sub(lambda match: view(match.group(0)), part)
            for index, part in enumerate(parts)
        )
        asked = cls(lake=lake, query=rewritten, written=query, names=names, versions=versions, moment=moment)
        return replace(asked, sight=sight, keys=keys)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the result, not computed yet."""
        for name in sorted(self.names):
            rows = self.table(spark, name)
            seen = rows if self.sight is None else self.sight.of(spark, self.lake, name, rows)
            seen.createOrReplaceTempView(view(name))
        require_read_only(
            spark, self.query, map(view, self.names), written=self.written, views_only=self.sight is not None
        )
        return spark.sql(self.query)

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """Return all rows of a table or view, by its name."""
        if name == VERSIONS:
            return _executions(spark, self.lake, self.moment)
        if name == PUBLICATIONS:
            version = _readable_at(self.lake, EVENTS, self.moment) if self.moment else None
            return metadata_decorator.context_table(spark, self.lake, version)
        if name == STREAM_OFFSETS:
            return spark.createDataFrame(checkpointer.stream_offset_rows(existing().checkpoints), OFFSETS_DDL)
        if name.endswith(CONSUMERS) and name.removesuffix(CONSUMERS) in EVERY:
            dataset = name.removesuffix(CONSUMERS)
            return consumer_view(self.table(spark, dataset), carried(EVERY[dataset], self.lake.table(dataset)))
        if (materialized := _view_of(name)) is not None:
            inputs = {each: self.stored(spark, each) for each in _read_by(name)}
            return dataset_materializer.shown(spark, materialized.view, inputs)
        if len(parts := _read_by(name)) > 1:
            rows, lines = (self.stored(spark, part) for part in parts)
            return vertical_partitioner.whole(rows, lines, EVERY[parts[0]])
        return self.stored(spark, name)

    def stored(self, spark: SparkSession, name: str) -> DataFrame:
        """Return the rows of a stored table, decrypted if there are keys."""
        rows, contract = self.lake.read(spark, name, self.versions[name]), EVERY.get(name)
        if self.keys is None or contract is None or contract.encrypted is None:
            return rows
        encryption.offer(spark, self.keys, contract.encrypted.key)
        return encryptor.decrypted(rows, contract)


def _read_by(name: str) -> Sequence[str]:
    """List the stored datasets that a table or view reads, the one that it is a view of first."""
    if (materialized := _view_of(name)) is not None:
        return tuple(read.dataset for read in materialized.reads)
    dataset = name.removesuffix(WHOLE)
    if dataset != name and dataset in EVERY and (wide := EVERY[dataset].wide) is not None:
        return dataset, wide.of
    return (name.removesuffix(CONSUMERS),)


def _view_of(name: str) -> Contract | None:
    """Find the dataset whose view a name stands for, whether it has been materialized or not."""
    contract = EVERY.get(name.removesuffix(VIEW))
    return contract if contract and contract.view and name.endswith(VIEW) else None


def _record_reads(asked: _Asked, query: str) -> None:
    """Record that somebody reads columns that are being retired, so that they are not removed under a query."""
    parts = [part for part in LITERALS.split(query) if not part.startswith(("'", "--"))]
    words = set(NAME.findall(" ".join(parts).lower()))
    datasets = {name.removesuffix(CONSUMERS) for name in asked.names} & EVERY.keys()
    column_reads.record(
        EventLog(asked.lake),
        [
            ColumnRead(dataset=name, column=migration.old, by=getpass.getuser(), at=datetime.now(timezone.utc))
            for name in sorted(datasets)
            for migration in EVERY[name].migrations
            if migration.old.lower() in words
        ],
    )


def _versions(lake: Lake, names: Collection[str], moment: datetime | None) -> Mapping[str, int]:
    if moment is None:
        return lake.versions(sorted(names))
    return {name: _readable_at(lake, name, moment) for name in names if lake.caught_up(name) is not None}


def _derived(lake: Lake) -> list[str]:
    """List the tables that are computed on request."""
    return [*([] if lake.table(EVENTS) is None else [PUBLICATIONS]), VERSIONS, STREAM_OFFSETS]


def _existing(lake: Lake, wanted: str) -> str:
    there = sorted(name for name in (*EVERY, EVENTS) if lake.caught_up(name) is not None)
    kept = [batch.name for batch in refused.kept(lake)] if wanted.startswith(f"{refused.LAYER}.") else []
    tables = [*there, *kept, *_derived(lake)]
    return f"{similar([wanted], tables)}tables: {', '.join(tables)}" if there else NOTHING_PUBLISHED


@contextmanager
def session(settings: Settings) -> Iterator[SparkSession]:
    """Give the Spark session of a command: on the deployment's server, or within this process in classic mode."""
    if settings.spark.mode == "classic":
        # Only classic mode, with Spark inside this process, needs Dagster's resource.
        from resources.spark import SparkResource

        with SparkResource(home=str(settings.home)).guard() as spark:
            yield spark
    else:
        with spark_attached.guarded(settings) as spark:
            yield spark


@contextmanager
def _explained(query: str, names: Collection[str], settings: Settings) -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, spark_probe.SparkServerLost) as error:
        if spark_connect.ran_out_of_memory(settings, error):
            raise QueryFailed(
                what="the query needed more memory than its Spark server has",
                where=f"'{query.strip()[:200]}'",
                next_step="ask for fewer rows or shorter values; if it ended the server, the next query starts another",
            ) from error
        if isinstance(error, spark_probe.SparkServerLost):
            raise
        typed = store_faults.classify(str(error), f"'{query.strip()[:200]}'")
        typed = typed or encryption.explained(str(error), settings)
        if typed is not None:
            raise typed from error
        described = min(names, default="silver.visits")
        lines = str(error).split("JVM stacktrace:")[0].strip().splitlines()
        raise QueryFailed(
            what=lines[0] if lines else type(error).__name__,
            where=f"'{query.strip()[:200]}'",
            next_step=f'mend the query; columns of a table: blogdata sql "DESCRIBE {described}"',
        ) from error


def view(name: str) -> str:
    """Return the name of the temporary view that a statement reads in place of a table."""
    return name.lower().replace(".", "__")


def _executions(spark: SparkSession, lake: Lake, moment: datetime | None) -> DataFrame:
    rows = []
    for dataset, contract in EVERY.items():
        if contract.executed is None or lake.caught_up(dataset) is None:
            continue
        newest = None if moment is None else version_at(lake, dataset, moment)
        marks = [mark for mark in EventLog(lake).executions(dataset) if newest is None or mark.version <= newest]
        rows += [(dataset, line.execution, line.version, line.applied) for line in executions.state(marks).values()]
    return spark.createDataFrame(rows, "dataset STRING, execution STRING, table_version BIGINT, applied BOOLEAN")


def version_at(lake: Lake, dataset: str, moment: datetime) -> int:
    """Return the version that a table had at a time; the newest version if nothing was published since.

    For a companion table, return the version that belongs to its main table's version at that time.

    Raises:
        ConfigurationError: The table did not exist yet.
    """
    table = lake.caught_up(dataset)
    if table is not None and (main := companions.main_of(table)) is not None:
        return companions.version_with(lake, dataset, version_at(lake, main, moment))
    oldest = moment
    for version, entry in lake.commits(table) if table else []:
        oldest = datetime.fromtimestamp(entry["timestamp"] / 1000, tz=timezone.utc)
        if oldest <= moment:
            return version
    raise ConfigurationError(
        what=f"{dataset} did not exist at {moment:%Y-%m-%d %H:%M:%S} (UTC)",
        where="--as-of",
        next_step=f"give a time from {oldest:%Y-%m-%dT%H:%M:%S} on",
    )


def _readable_at(lake: Lake, dataset: str, moment: datetime) -> int:
    version = version_at(lake, dataset, moment)
    if lake.is_readable(dataset, version):
        return version
    raise ConfigurationError(
        what=f"{dataset} of {moment:%Y-%m-%d %H:%M:%S} (UTC) can no longer be read: files of it were removed",
        where="--as-of",
        next_step=f"give a later time: what was replaced less than {READABLE.days} days ago is kept",
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)
