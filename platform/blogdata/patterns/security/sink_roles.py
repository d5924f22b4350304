"""Who owns, writes and reads the tables of a database, by the rights of the roles.

Pattern: Fine-Grained Accessor for Tables (:mod:`.fine_grained_accessor_for_tables`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.patterns.idempotency.transactional_sink import PUBLICATIONS
from blogdata.patterns.security.fine_grained_accessor_for_tables import RIGHTS, Role, grants
from blogdata.publish.contract import Contract

if TYPE_CHECKING:
    import psycopg

_MARK = "rights "


@dataclass(frozen=True, kw_only=True)
class SinkRoles:
    owner: str
    writer: str
    readers: Mapping[Role, str]


@contextmanager
def granting(
    connection: psycopg.Connection, schema: str, contracts: Sequence[Contract], *, roles: SinkRoles
) -> Iterator[None]:
    """Create or alter tables as their owner, and grant the writer and the readers what they may do."""
    from psycopg import sql

    if connection.execute("SELECT session_user").fetchone() != (roles.writer,):
        yield
        return
    # Until the transaction ends.
    connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(roles.owner)))
    yield
    _grant(connection, schema, contracts, roles)


def _grant(connection: psycopg.Connection, schema: str, contracts: Sequence[Contract], roles: SinkRoles) -> None:
    tables = [*(contract.name for contract in contracts), PUBLICATIONS]
    # Table by table: the schema may have views of somebody else, which the owner may not grant.
    writes = [f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{schema}"."{name}" TO "{roles.writer}"' for name in tables]
    statements = [f'GRANT USAGE ON SCHEMA "{schema}" TO "{roles.writer}"', *writes]
    for role, login in roles.readers.items():
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
    if set(connection.execute(query.encode(), [roles.writer, schema, tables]).fetchall()) == {(mark, True)}:
        return
    for statement in statements:
        connection.execute(statement.encode())
    for name in tables:
        connection.execute(f'COMMENT ON TABLE "{schema}"."{name}" IS \'{mark}\''.encode())
