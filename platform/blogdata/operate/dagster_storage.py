"""Dagster's event log on SQLite, with connections that stay open.

Dagster's own opens and closes a connection for every statement: each time SQLAlchemy compiles the statement, SQLite
reads the schema, and closing checkpoints the write-ahead log, which waits for the disk. With open connections the
events of an hour take a quarter of the time. The files are Dagster's: each of the two continues with the other's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dagster import EventLogEntry
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import QueuePool

from blogdata.operate.dagster_internals import ConfigurableClassData, SqliteEventLogStorage

_BUSY_SECONDS = 30
_MOST_FILES = 8
"""Most files that are kept open: the index, and the logs of the runs that were used last."""


class KeptEventLog(SqliteEventLogStorage):
    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: dict[str, Engine] = {}
        self._tables: set[str] = set()
        self._turn = threading.RLock()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> KeptEventLog:
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        # One thread at a time, as in Dagster's own.
        with self._turn:
            # Those that were used last are at the end.
            self._engines[shard] = self._engines.pop(shard) if shard in self._engines else self._opened(shard)
            if len(self._engines) > _MOST_FILES:
                self._engines.pop(next(iter(self._engines))).dispose()
            with self._engines[shard].begin() as connection:
                yield connection

    def _opened(self, shard: str) -> Engine:
        # Dagster creates the file and its tables.
        with super()._connect(shard):
            pass
        url, busy = self.conn_string_for_shard(shard), {"timeout": _BUSY_SECONDS}
        return create_engine(url, poolclass=QueuePool, pool_size=1, connect_args=busy)

    def store_event(self, event: EventLogEntry) -> None:
        super().store_event(event)
        # The web server watches the run's file; with an open connection a commit changes only the write-ahead log.
        os.utime(self.path_for_shard(event.run_id))

    def has_table(self, table_name: str) -> bool:
        """Return whether the index has a table; True is cached: Dagster asks for each event and never drops a table."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def dispose(self) -> None:
        super().dispose()
        with self._turn:
            while self._engines:
                self._engines.popitem()[1].dispose()
