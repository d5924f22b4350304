"""The lake's views as SQL that Spark or DuckDB runs without the platform.

There are consumer views of shared datasets, views with all columns of datasets whose wide ones another dataset has, one
of the context table, and one of each dataset that lives in several tables. The last kind names member tables with their
versions, so it is written again when other members become visible; the others show the newest rows at query time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.contract.privacy import CONSUMERS, visible
from blogdata.contract.schema import WHOLE
from blogdata.files import write_atomically
from blogdata.ledger.events import EVENTS
from blogdata.patterns.data_value.metadata_decorator import CONTEXT, IS_PUBLICATION, PUBLICATIONS
from blogdata.patterns.storage import vertical_partitioner
from blogdata.table import members
from blogdata.table.lake import Lake
from blogdata.table.members import Member


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The SQL syntax in which engines differ; `{path}` is the quoted path of a Delta table."""

    file: str
    quote: str
    path_quote: str
    table: str
    at_version: str
    first: tuple[str, ...] = ()


SPARK = Dialect(
    file="views.sql", quote="`", path_quote="`", table="delta.{path}", at_version="delta.{path} VERSION AS OF {version}"
)
DUCKDB = Dialect(
    file="views.duckdb.sql",
    quote='"',
    path_quote="'",
    table="delta_scan({path})",
    at_version="delta_scan({path}, version => {version})",
    first=("CREATE OR REPLACE MACRO get_json_object(document, place) AS json_extract_string(document, place)",),
)


def statements(lake: Lake, contracts: Iterable[Contract], dialect: Dialect) -> list[str]:
    """Build the SQL of all views for one engine, to be run in order; running it again is safe."""
    views = dict(_views(lake, contracts, dialect))
    schemas = sorted({name.split(".", 1)[0] for name in views})
    return [
        *dialect.first,
        *(f"CREATE SCHEMA IF NOT EXISTS {name}" for name in schemas),
        *(f"CREATE OR REPLACE VIEW {name} AS {query}" for name, query in views.items()),
    ]


def write(lake: Lake, contracts: Sequence[Contract]) -> list[Path]:
    """Write the SQL of all views to files at the lake's root, one per engine; none in an object store."""
    if "://" in lake.root:
        return []
    Path(lake.root).mkdir(parents=True, exist_ok=True)
    files = {Path(lake.root) / dialect.file: dialect for dialect in (SPARK, DUCKDB)}
    for file, dialect in files.items():
        text = "".join(f"{line};\n" for line in statements(lake, contracts, dialect))
        write_atomically(file, text.encode(), mode=0o644)
    return [*files]


def _views(lake: Lake, contracts: Iterable[Contract], dialect: Dialect) -> Iterator[tuple[str, str]]:
    if lake.table(EVENTS) is not None:
        context = ", ".join(f"{expression} AS {name}" for name, expression in CONTEXT.items())
        yield PUBLICATIONS, f"SELECT {context} FROM {_table(lake, EVENTS, dialect)} WHERE {IS_PUBLICATION}"
    contracts = list(contracts)
    # An engine without the platform has no keys.
    unreadable = {contract.dataset for contract in contracts if contract.encrypted is not None}
    for contract in contracts:
        dataset, table = contract.dataset, lake.caught_up(contract.dataset)
        if table is None:
            continue
        columns, source = [field.name for field in table.schema().fields], _table(lake, dataset, dialect)
        if members.is_pointer(table):
            tables = members.members_of(table).visible
            columns, source = list(members.columns_of(tables)), dataset
            if tables:
                yield dataset, _union([_member(lake, dataset, member, columns, dialect) for member in tables])
        if contract.wide is not None and contract.wide.of not in unreadable:
            lines = _table(lake, contract.wide.of, dialect)
            query = vertical_partitioner.query(columns, contract, rows=source, lines=lines, quote=dialect.quote)
            yield f"{dataset}{WHOLE}", query
        if shared := [name for name in visible(carried(contract, table)) if name in columns]:
            yield f"{dataset}{CONSUMERS}", f"SELECT {_listed(shared, dialect)} FROM {source}"


def _member(lake: Lake, dataset: str, member: Member, columns: Iterable[str], dialect: Dialect) -> str:
    selected = [f"{'' if name in member.columns else 'NULL AS '}{_listed([name], dialect)}" for name in columns]
    table = _table(lake, members.table_of(dataset, member.location), dialect, member.version)
    query = f"SELECT {', '.join(selected)} FROM {table}"
    if not member.frozen:
        return query
    keys = ", ".join(f"'{key}'" for key in member.partitions)
    return f"{query} WHERE {_listed([str(member.partition_column)], dialect)} IN ({keys})"


def _table(lake: Lake, name: str, dialect: Dialect, version: int | None = None) -> str:
    quote = dialect.path_quote
    path = quote + lake.path(name).replace(quote, quote * 2) + quote
    return dialect.table.format(path=path) if version is None else dialect.at_version.format(path=path, version=version)


def _listed(names: Iterable[str], dialect: Dialect) -> str:
    return ", ".join(f"{dialect.quote}{name}{dialect.quote}" for name in names)


def _union(queries: Sequence[str]) -> str:
    # As a balanced tree: in a linear chain the plan's depth is the number of queries, and engines refuse deep plans.
    if len(queries) == 1:
        return queries[0]
    half = len(queries) // 2
    return f"({_union(queries[:half])}) UNION ALL ({_union(queries[half:])})"
