"""Dagster's storage on SQLite, with connections that stay open.

Dagster opens and closes a connection for every statement. Each time SQLAlchemy compiles the statement, SQLite reads
the schema, and closing checkpoints the write-ahead log into the file, which waits for the disk three times. Here the
connections stay open. The file format is that of Dagster's own storage: each of the two can continue with the other's
files.

The index (events of assets, checks and runs), the runs and the cursors of sensors are durable when a statement returns,
as in Dagster's own storage. The event log of a run is written without waiting for the disk: a power cut may lose its
last lines, a killed process loses none.

Dagster has no public base class for storages. The private classes used here are also used by its PostgreSQL storage.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from dagster import DagsterInstance, EventLogEntry, StringSource
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import QueuePool

from blogdata.services.dagster_internals import (
    INDEX_SHARD_NAME,
    ConfigurableClass,
    ConfigurableClassData,
    DagsterStorage,
    SqliteEventLogStorage,
    SqliteRunStorage,
    SqliteScheduleStorage,
)

_BUSY_SECONDS = 30
_MOST_FILES = 8
"""Most files that are kept open at once; every run has one file."""


class _Kept:
    """Open connections to the most recently used SQLite files: one idle connection per file."""

    def __init__(self) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._lock = threading.Lock()
        # Dagster does not dispose of every storage.
        weakref.finalize(self, _close, self._engines)

    @contextmanager
    def begin(self, url: str, *, waits: bool = True) -> Iterator[Connection]:
        """Begin a transaction."""
        with self._engine(url, waits).begin() as connection:
            yield connection

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            _close(self._engines)

    def _engine(self, url: str, waits: bool) -> Engine:
        with self._lock:
            engine = self._engines.pop(url, None) or _engine(url, waits)
            self._engines[url] = engine
            while len(self._engines) > _MOST_FILES:
                self._engines.popitem(last=False)[1].dispose()
            return engine


def _engine(url: str, waits: bool) -> Engine:
    engine = create_engine(
        url, poolclass=QueuePool, pool_size=1, max_overflow=-1, connect_args={"timeout": _BUSY_SECONDS}
    )
    if not waits:
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = NORMAL"))
    return engine


def _close(engines: OrderedDict[str, Engine]) -> None:
    while engines:
        engines.popitem()[1].dispose()


class KeptEventLog(SqliteEventLogStorage):
    """Dagster's event log: a file for each run, and the index with the events of assets, checks and runs."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._kept = _Kept()
        self._made: set[str] = set()
        self._there: set[str] = set()
        self._turn = threading.RLock()
        super().__init__(base_dir, inst_data)

    def run_connection(self, run_id: str | None = None) -> AbstractContextManager[Connection]:
        """Begin a transaction in the file of a run."""
        return self._transaction(run_id or "")

    def index_connection(self) -> AbstractContextManager[Connection]:
        """Begin a transaction in the index."""
        return self._transaction(INDEX_SHARD_NAME)

    @contextmanager
    def _transaction(self, shard: str) -> Iterator[Connection]:
        # One thread at a time, as in Dagster's own storage.
        with self._turn:
            if shard not in self._made:
                # Dagster creates the file and its tables.
                with super().run_connection(shard):
                    self._made.add(shard)
            url = self.conn_string_for_shard(shard)
            with self._kept.begin(url, waits=shard == INDEX_SHARD_NAME) as connection:
                yield connection

    def store_event(self, event: EventLogEntry) -> None:
        """Store an event."""
        super().store_event(event)
        # The web server watches the run's file; with an open connection a commit changes only the write-ahead log.
        os.utime(self.path_for_shard(event.run_id))

    def has_table(self, table_name: str) -> bool:
        """Return whether the index has a table; True is cached: Dagster asks for each event and never drops a table."""
        if table_name not in self._there and super().has_table(table_name):
            self._there.add(table_name)
        return table_name in self._there

    def wipe(self) -> None:
        """Remove all events, and the files of the runs."""
        with self._turn:
            self._kept.close()
            self._made.clear()
            super().wipe()

    def dispose(self) -> None:
        """Close the files."""
        super().dispose()
        self._kept.close()


class _OneFile:
    """A storage in one file, before Dagster's own class of it."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._kept, self._url = _Kept(), conn_string
        super().__init__(conn_string, inst_data)  # type: ignore[call-arg]

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Begin a transaction."""
        with self._kept.begin(self._url) as connection:
            yield connection


class KeptRuns(_OneFile, SqliteRunStorage):
    """Dagster's runs."""

    def dispose(self) -> None:
        """Close the file."""
        super().dispose()
        self._kept.close()


class KeptSchedules(_OneFile, SqliteScheduleStorage):
    """Dagster's sensors and schedules: their states, ticks and cursors."""


class KeptSqliteStorage(DagsterStorage[DagsterInstance], ConfigurableClass):
    """The event log, run and schedule storages together; the class that `dagster.yaml` names."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        base = Path(base_dir)
        self._runs = KeptRuns.from_local(str(base / "history"))
        self._events = KeptEventLog(str(base / "history" / "runs"))
        self._schedules = KeptSchedules.from_local(str(base / "schedules"))
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """The storage's entry in `dagster.yaml`."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """Return the configuration schema."""
        return {"base_dir": StringSource}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> KeptSqliteStorage:
        """Open the storage from its configuration."""
        return cls(inst_data=inst_data, **config_value)

    @property
    def event_log_storage(self) -> KeptEventLog:
        """The event log."""
        return self._events

    @property
    def run_storage(self) -> KeptRuns:
        """The runs."""
        return self._runs

    @property
    def schedule_storage(self) -> SqliteScheduleStorage:
        """The schedules and sensors."""
        return self._schedules

    def register_instance(self, instance: DagsterInstance) -> None:
        """Register the Dagster instance with all three storages."""
        super().register_instance(instance)
        for storage in (self._runs, self._events, self._schedules):
            if not storage.has_instance:
                storage.register_instance(instance)
