"""A relational database as the sink of a Transactional Writer: a partition of several tables in one transaction.

How it works: one transaction deletes the partition's rows, copies the new ones by COPY, and compares their count with
the ledger. It also writes into the table `publications` which versions of which datasets are served: so a retry is a
no-op, even of an attempt that was committed and never confirmed, and no older version replaces a newer one. A delivery
counts only if all of its tables have a line. Versions are compared within one table, by its id: a rebuilt table
replaces whatever its predecessor has served.

PostgreSQL has no NUL in a text, so it is served as U+2400 (SYMBOL FOR NULL), and limits index entries to 2704 bytes, so
a table has no primary key: the audit has counted repeated keys.

The trap: one transaction per task. Each is all or nothing, but a job that is retried has already committed some of
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from blogdata.contract.contract import Contract
from blogdata.errors import PlatformError, TransientError, foreign
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.ledger.deliveries import Served
from blogdata.operate import postgres
from blogdata.patterns.security.fine_grained_accessor_for_tables import RIGHTS, Role, grants

if TYPE_CHECKING:
    import pyarrow as pa

PUBLICATIONS = "publications"
LOGINS = {Role(name): f"{postgres.PREFIX}{name}" for name in postgres.READERS}
"""Who reads the tables of the deployment's own server."""
_MARK = "rights "
_TYPES = {
    "STRING": "text",
    "BIGINT": "bigint",
    "INT": "integer",
    "DOUBLE": "double precision",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp with time zone",
    "BINARY": "bytea",
}
_TOO_MUCH = "54"
"""SQLSTATE class "program limit exceeded": here a row that is too large."""


class RowsRefused(PlatformError):
    """Raised when the database refused rows or has not received all of them; nothing was served."""


@dataclass(frozen=True, kw_only=True)
class ServedTable:
    contract: Contract
    table_id: str
    version: int
    rows: int
    batches: Iterable[pa.RecordBatch]


@dataclass(frozen=True, kw_only=True)
class SinkDelivery:
    partition: str
    parts: Sequence[ServedTable]
    run_id: str

    @property
    def batch_id(self) -> str:
        """Identifier of the delivery; the same for every attempt to serve the same versions."""
        states = (f"{part.contract.dataset}@{part.table_id}:{part.version}" for part in self.parts)
        return f"{self.partition}/" + "+".join(states)

    @property
    def rows(self) -> dict[str, int]:
        return {part.contract.dataset: part.rows for part in self.parts}


def deliver(connection: psycopg.Connection, schema: str, delivery: SinkDelivery) -> bool:
    """Replace a partition of several tables in one transaction; return whether it was served already.

    If the connection is the writer's of the deployment's own server, tables are the owner's, and the readers get their
    rights. Of any other one tables are its own, and nothing is granted.

    Raises:
        psycopg.OperationalError: The database went away, is full or busy; a retry finds out whether it was committed.
    """
    try:
        with connection.transaction():
            _alone(connection, schema)
            contracts = [part.contract for part in delivery.parts]
            login = connection.execute("SELECT session_user").fetchone()
            is_writer = login == (postgres.WRITER,)
            if is_writer:
                connection.execute(f'SET LOCAL ROLE "{postgres.OWNER}"'.encode())
            _make(connection, schema, contracts)
            if is_writer:
                _grant(connection, schema, contracts)
        with connection.transaction():
            _alone(connection, f"{schema}/{delivery.partition}")
            if _is_served(connection, schema, delivery):
                return True
            for part in delivery.parts:
                dataset, rows = part.contract.dataset, _replace(connection, schema, delivery.partition, part)
                if rows != part.rows:
                    raise RowsRefused(
                        what=f"{dataset} has {part.rows} rows by its ledger, but {rows} arrived",
                        where=f"{schema}, {delivery.batch_id}",
                        next_step=Remedy("nothing of it is served; look at: ", ShowLedger(dataset=dataset)),
                    )
                _record(connection, schema, delivery, part)
    except psycopg.DatabaseError as error:
        if isinstance(error, psycopg.OperationalError) and not (error.sqlstate or "").startswith(_TOO_MUCH):
            raise
        raise RowsRefused(
            what=f"PostgreSQL refused the delivery: {foreign.unquoted(error)}",
            where=f"{schema}, {delivery.batch_id}",
            next_step="nothing of it is served; mend the rows, or what the table of the database allows",
        ) from error
    return False


def _grant(connection: psycopg.Connection, schema: str, contracts: Sequence[Contract]) -> None:
    tables = [*(contract.name for contract in contracts), PUBLICATIONS]
    # Table by table: the schema may have views of somebody else, which the owner may not grant.
    writes = [f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{schema}"."{name}" TO "{postgres.WRITER}"' for name in tables]
    statements = [f'GRANT USAGE ON SCHEMA "{schema}" TO "{postgres.WRITER}"', *writes]
    for role, login in LOGINS.items():
        statements += grants(contracts, schema, role, login)
        if RIGHTS[role].technical:
            statements.append(f'GRANT SELECT ON "{schema}"."{PUBLICATIONS}" TO "{login}"')
    # EXPLAIN estimates by statistics of values how many hidden rows match.
    statements += [
        f'ALTER TABLE "{schema}"."{contract.name}" ALTER COLUMN "{column.name}" SET STATISTICS 0'
        for contract in contracts
        for column in contract.columns
        if column.name != contract.partition_column
    ]
    # Granting again would lock the tables against their readers.
    mark = _MARK + hashlib.sha256("\n".join(statements).encode()).hexdigest()
    table = "to_regclass(format('%%I.%%I', %s::text, name))"
    # A table that was restored without its rights may have its comment.
    query = (
        "SELECT obj_description(oid, 'pg_class'), has_table_privilege(%s::name, oid, 'INSERT') "
        f"FROM (SELECT {table}::oid AS oid FROM unnest(%s::text[]) AS name) AS tables"
    )
    if set(connection.execute(query.encode(), [postgres.WRITER, schema, tables]).fetchall()) == {(mark, True)}:
        return
    for statement in statements:
        connection.execute(statement.encode())
    for name in tables:
        connection.execute(f'COMMENT ON TABLE "{schema}"."{name}" IS \'{mark}\''.encode())


def served(connection: psycopg.Connection, schema: str) -> dict[tuple[str, str, str], int]:
    """Read the newest served version, by dataset, id of its table, and partition."""
    if not _columns(connection, schema, PUBLICATIONS):
        return {}
    query = f'SELECT dataset, table_id, partition, max(table_version) FROM "{schema}"."{PUBLICATIONS}" GROUP BY 1, 2, 3'
    return {(dataset, table_id, key): version for dataset, table_id, key, version in connection.execute(query.encode())}


def deliveries(connection: psycopg.Connection, schema: str, datasets: Collection[str]) -> list[Served]:
    """List the deliveries of these datasets together that are served, oldest first."""
    if not _columns(connection, schema, PUBLICATIONS):
        return []
    query = (
        "SELECT batch_id, partition, jsonb_object_agg(dataset, table_version), sum(rows)::bigint, min(run_id), "
        f'min(published_at) FROM "{schema}"."{PUBLICATIONS}" GROUP BY 1, 2 ORDER BY 6'
    )
    return [
        Served(batch_id=batch, partition=partition, inputs=inputs, rows=count, run_id=run_id, served_at=at)
        for batch, partition, inputs, count, run_id, at in connection.execute(query.encode())
        # A delivery that lacks the line of a dataset is about to be served again.
        if inputs.keys() == set(datasets)
    ]


def _alone(connection: psycopg.Connection, what: str) -> None:
    # Released at the end of the transaction, committed or not.
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [what])


def _make(connection: psycopg.Connection, schema: str, contracts: Sequence[Contract]) -> None:
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
    connection.execute(
        f'CREATE TABLE IF NOT EXISTS "{schema}"."{PUBLICATIONS}" (batch_id text, dataset text, '
        "partition text NOT NULL, table_id text, table_version bigint NOT NULL, rows bigint NOT NULL, "
        "run_id text NOT NULL, published_at timestamp with time zone NOT NULL DEFAULT now(), "
        "PRIMARY KEY (batch_id, dataset))".encode()
    )
    for contract in contracts:
        if columns := _columns(connection, schema, contract.name):
            _migrate(connection, schema, contract, columns)
            continue
        declared = (
            f'"{column.name}" {_TYPES[column.type]}'
            + ("" if column.nullable and column.name not in contract.key else " NOT NULL")
            for column in contract.columns
        )
        connection.execute(f'CREATE TABLE "{schema}"."{contract.name}" ({", ".join(declared)})'.encode())


def _migrate(connection: psycopg.Connection, schema: str, contract: Contract, columns: set[str]) -> None:
    """Add the columns that are new in the contract, null or as the one that they rename, and drop retired ones."""
    declared, table = {column.name for column in contract.columns}, f'"{schema}"."{contract.name}"'
    absent = [column for column in contract.columns if column.name not in columns]
    retired = columns & {move.old for move in contract.migrations} - declared
    if columns - declared - retired or not all(column.nullable for column in absent):
        raise PlatformError(
            what=f"the columns of {schema}.{contract.name} are not those of {contract.dataset}",
            where=f"{schema}.{contract.name}",
            next_step=f"migrate it, or drop it and its rows of {schema}.{PUBLICATIONS}: all is then served anew",
        )
    renamed = {move.new: move.old for move in contract.migrations if not move.new_from_old}
    for column in absent:
        connection.execute(f'ALTER TABLE {table} ADD COLUMN "{column.name}" {_TYPES[column.type]}'.encode())
        if (old := renamed.get(column.name)) in columns:
            connection.execute(f'UPDATE {table} SET "{column.name}" = "{old}"'.encode())
    for name in sorted(retired):
        connection.execute(f'ALTER TABLE {table} DROP COLUMN "{name}"'.encode())


def _columns(connection: psycopg.Connection, schema: str, table: str) -> set[str]:
    query = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
    return {name for (name,) in connection.execute(query, [schema, table])}


def _is_served(connection: psycopg.Connection, schema: str, delivery: SinkDelivery) -> bool:
    newest = served(connection, schema)
    newer = [
        part.contract.dataset
        for part in delivery.parts
        if newest.get((part.contract.dataset, part.table_id, delivery.partition), -1) > part.version
    ]
    if newer:
        raise TransientError(
            what=f"a newer version of {', '.join(newer)} is served already",
            where=f"{schema}, {delivery.batch_id}",
            next_step="nothing was changed; the step is retried and reads the newest versions",
        )
    query = f'SELECT dataset FROM "{schema}"."{PUBLICATIONS}" WHERE batch_id = %s'
    datasets = {dataset for (dataset,) in connection.execute(query.encode(), [delivery.batch_id])}
    return datasets >= {part.contract.dataset for part in delivery.parts}


def _replace(connection: psycopg.Connection, schema: str, partition: str, part: ServedTable) -> int:
    """Replace the rows of a partition; return how many the table has now."""
    table, key = f'"{schema}"."{part.contract.name}"', part.contract.partition_column
    connection.execute(f'DELETE FROM {table} WHERE "{key}" = %s'.encode(), [partition])
    names = [column.name for column in part.contract.columns]
    columns = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
        for batch in part.batches:
            # A dataset's table gets a new column of the contract with its next publication; until then it is null.
            empty = [None] * batch.num_rows
            values = [batch[name].to_pylist() if name in batch.schema.names else empty for name in names]
            for row in zip(*values, strict=True):
                copy.write_row([value.replace("\0", "\u2400") if isinstance(value, str) else value for value in row])
    query = f'SELECT count(*) FROM {table} WHERE "{key}" = %s'
    ((rows,),) = connection.execute(query.encode(), [partition]).fetchall()
    return int(rows)


def _record(connection: psycopg.Connection, schema: str, delivery: SinkDelivery, part: ServedTable) -> None:
    publications, dataset = f'"{schema}"."{PUBLICATIONS}"', part.contract.dataset
    # Rows served from another table are replaced now: if that table came back, it would have to serve them again.
    replaced = f"DELETE FROM {publications} WHERE dataset = %s AND partition = %s AND table_id IS DISTINCT FROM %s"
    connection.execute(replaced.encode(), [dataset, delivery.partition, part.table_id])
    # A table that is served again has a line from the first time.
    line = (
        f"INSERT INTO {publications} (batch_id, dataset, partition, table_id, table_version, rows, run_id) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (batch_id, dataset) DO UPDATE "
        "SET rows = excluded.rows, run_id = excluded.run_id, published_at = excluded.published_at"
    )
    connection.execute(
        line.encode(),
        [delivery.batch_id, dataset, delivery.partition, part.table_id, part.version, part.rows, delivery.run_id],
    )
