"""Diagnoses a deployment: checks each requirement, and names the next step for each one that fails."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import psutil

from blogdata.durable.sqlite_file import SqliteStore
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, StartService
from blogdata.services import (
    alert_channels,
    dagster_home,
    engine,
    files,
    jars,
    java,
    postgres,
    postgres_connection,
    processes,
    reach,
    secrets,
    spark_conf,
    spark_connect,
)
from blogdata.services.config import Settings

_PACKAGES = ("dagster", "dagster-pyspark", "dagster-deltalake", "pyspark", "delta-spark", "pyarrow", "pandas")
_LEAST_DISK_BYTES = 2 * 1024**3
_LEAST_MEMORY_BYTES = 3 * 1024**3


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Result of one check."""

    name: str
    ok: bool
    detail: str
    remedy: Remedy = field(default_factory=Remedy)

    @property
    def next_step(self) -> str:
        """The remedy as this process renders it; empty if the requirement is met."""
        return "" if self.ok else str(self.remedy)

    def as_json(self) -> dict[str, object]:
        """Return the finding as the command prints it."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "next_step": self.next_step}


def examine(settings: Settings, kept: Sequence[SqliteStore] = ()) -> list[Diagnosis]:
    """Run all checks without changing anything.

    Returns:
        The findings; a requirement comes after those it depends on.
    """
    looks: list[tuple[str, Callable[[Settings], Iterator[Diagnosis]]]] = [
        ("python", _python),
        ("packages", _packages),
        ("home", _home),
        ("privacy", _privacy),
        ("secrets", _secrets),
        ("reach", _reach),
        ("disk", _disk),
        ("memory", _memory),
        ("java", _java),
        ("jars", _jars),
        ("engine", _engine),
        ("port", _ports),
        ("spark", _spark),
        ("postgres", _postgres),
        ("tables", _tables),
        ("storage", _storage),
        ("alerts", _alerts),
        *((one.path.name, partial(_kept, one)) for one in kept),
    ]
    findings: list[Diagnosis] = []
    for name, look in looks:
        try:
            findings += look(settings)
        except PlatformError as error:
            detail = f"{error.what} ({error.where})"
            findings.append(Diagnosis(name=name, ok=False, detail=detail, remedy=error.remedy))
    return findings


def _python(settings: Settings) -> Iterator[Diagnosis]:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = (3, 10) <= sys.version_info[:2] < (3, 14)
    step = Remedy("Use Python 3.10 to 3.13: make clean setup PYTHON=python3.12")
    yield Diagnosis(name="python", ok=ok, detail=f"{found} at {sys.executable}", remedy=step)


def _packages(settings: Settings) -> Iterator[Diagnosis]:
    found, absent = [], []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            absent.append(package)
    if absent:
        yield Diagnosis(
            name="packages", ok=False, detail=f"missing: {', '.join(absent)}", remedy=Remedy("Run make setup")
        )
    else:
        yield Diagnosis(name="packages", ok=True, detail=", ".join(found))


def _home(settings: Settings) -> Iterator[Diagnosis]:
    ok = os.access(settings.home, os.W_OK | os.X_OK)
    step = Remedy("Set BLOGDATA_HOME to a folder you may write")
    detail = f"{settings.home} is {'writable' if ok else 'not writable'}"
    yield Diagnosis(name="home", ok=ok, detail=detail, remedy=step)


def _privacy(settings: Settings) -> Iterator[Diagnosis]:
    exposed = files.exposed_secrets(settings.home)
    folders = files.open_folders(settings.home, (settings.lake, settings.landing))
    if exposed:
        detail = f"others may read secrets: {', '.join(map(str, exposed))}"
        step = Remedy(f"Run chmod 600 {shlex.join(map(str, exposed))}, and replace what somebody may have read")
        yield Diagnosis(name="privacy", ok=False, detail=detail, remedy=step)
    elif folders:
        detail = f"open to other users: {', '.join(map(str, folders))}; if nobody shares them: chmod 700"
        yield Diagnosis(name="privacy", ok=True, detail=detail)
    else:
        yield Diagnosis(name="privacy", ok=True, detail="only its owner can enter the deployment's folders")


def _secrets(settings: Settings) -> Iterator[Diagnosis]:
    names = (
        settings.partner.secret,
        settings.postgres.secret,
        settings.dagster_secret,
        settings.tables.secret,
    )
    given = sorted({*filter(None, names)})
    for name in given:
        secrets.given(settings, name)
    found = f": {', '.join(given)}" if given else ""
    yield Diagnosis(name="secrets", ok=True, detail=f"from {settings.secrets.provider}{found}")


def _reach(settings: Settings) -> Iterator[Diagnosis]:
    for line in reach.lines(settings):
        yield Diagnosis(name="reach", ok=True, detail=line)


def _disk(settings: Settings) -> Iterator[Diagnosis]:
    free = shutil.disk_usage(settings.home).free
    ok = free >= _LEAST_DISK_BYTES
    step = Remedy("Free some space, or set BLOGDATA_HOME to another disk")
    yield Diagnosis(name="disk", ok=ok, detail=f"{free / 1024**3:.1f} GiB free", remedy=step)


def _memory(settings: Settings) -> Iterator[Diagnosis]:
    memory = psutil.virtual_memory()
    running = settings.spark.remote is not None or spark_connect.is_running(settings)
    ok = running or memory.available >= _LEAST_MEMORY_BYTES
    step = Remedy("End other programs, or set BLOGDATA_SPARK_HEAP=1g")
    detail = f"{memory.available / 1024**3:.1f} of {memory.total / 1024**3:.1f} GiB available"
    yield Diagnosis(name="memory", ok=ok, detail=f"{detail}; heap {settings.spark.heap}", remedy=step)


def _java(settings: Settings) -> Iterator[Diagnosis]:
    found = java.find(settings)
    yield Diagnosis(name="java", ok=True, detail=f"{found.version}, {found.source}, at {found.home}")


def _jars(settings: Settings) -> Iterator[Diagnosis]:
    pinned = jars.locate(settings)
    absent, corrupt = jars.missing(pinned), jars.corrupt(pinned)
    if corrupt:
        detail = f"wrong checksum: {', '.join(jar.file_name for jar in corrupt)}"
        step = Remedy(f"Remove {pinned.folder}; they are fetched again at the next start")
        yield Diagnosis(name="jars", ok=False, detail=detail, remedy=step)
    elif absent:
        detail = f"not fetched yet: {len(absent)} of {len(pinned.jars)} into {pinned.folder}"
        yield Diagnosis(name="jars", ok=False, detail=detail, remedy=Remedy("Run ", StartService(name="spark")))
    else:
        yield Diagnosis(name="jars", ok=True, detail=f"{len(pinned.jars)}, checksums right, in {pinned.folder}")


def _engine(settings: Settings) -> Iterator[Diagnosis]:
    if not spark_conf.has_engine(settings):
        yield Diagnosis(name="engine", ok=True, detail="not needed: writes are audited in checkpoints")
        return
    jar = engine.locate(jars.locate(settings))
    if jar.is_file():
        yield Diagnosis(name="engine", ok=True, detail=str(jar))
    else:
        yield Diagnosis(
            name="engine", ok=False, detail="not compiled yet", remedy=Remedy("Run ", StartService(name="spark"))
        )


def _ports(settings: Settings) -> Iterator[Diagnosis]:
    own_spark = settings.spark.mode == "local"
    yield _port(
        "port",
        settings.spark.port if own_spark else 0,
        "BLOGDATA_SPARK_PORT",
        lambda: spark_connect.is_running(settings),
    )
    if settings.postgres.port != 0 and settings.postgres.url is None:
        yield _port(
            "postgres port",
            settings.postgres.port,
            "BLOGDATA_POSTGRES_PORT",
            lambda: postgres.status(settings).state == "running",
        )


def _port(name: str, port: int, variable: str, ours: Callable[[], bool]) -> Diagnosis:
    if port == 0:
        return Diagnosis(name=name, ok=True, detail="no fixed port is needed")
    if processes.port_is_free(port) or ours():
        return Diagnosis(name=name, ok=True, detail=f"{port} can be used")
    detail = f"{port} is taken by {processes.port_owner(port)}"
    return Diagnosis(name=name, ok=False, detail=detail, remedy=Remedy(f"Set {variable} to a free port, or to 0"))


def _spark(settings: Settings) -> Iterator[Diagnosis]:
    if settings.spark.mode == "classic":
        detail = f"classic sessions on {settings.spark.master}; no server is needed"
        yield Diagnosis(name="spark", ok=True, detail=detail)
        return
    seen = spark_connect.status(settings)
    detail = f"{seen.state}: {seen.detail}" + (f" at {seen.url}" if seen.url else "")
    # A server that was never started, or was stopped, is started by the first job.
    ok = seen.state in ("running", "stopped")
    step = Remedy("Run ", StartService(name="spark"), "; it starts a new one")
    if settings.spark.mode == "remote":
        step = Remedy("Check the address in SPARK_REMOTE")
    yield Diagnosis(name="spark", ok=ok, detail=detail, remedy=step)


def _postgres(settings: Settings) -> Iterator[Diagnosis]:
    seen = postgres.status(settings)
    # A deployment has no PostgreSQL until `blogdata up postgres`, so a stopped one is no fault.
    ok = seen.state in ("running", "stopped")
    detail = f"{seen.state}: {seen.detail}" + (f" at {seen.url}" if seen.url else "")
    step = Remedy("Run ", StartService(name="postgres"))
    if settings.postgres.url:
        step = Remedy("Check the address in BLOGDATA_POSTGRES")
    yield Diagnosis(name="postgres", ok=ok, detail=detail, remedy=step)


def _tables(settings: Settings) -> Iterator[Diagnosis]:
    tables, address = settings.tables, postgres.of_tables(settings)
    if address is None or not (tables.devices or tables.users or tables.legacy_visits):
        return
    version, place = postgres_connection.probe(address), postgres_connection.without_password(address.url)
    detail = f"their database answers: PostgreSQL {version} at {place}"
    yield Diagnosis(name="tables", ok=True, detail=detail)


def _storage(settings: Settings) -> Iterator[Diagnosis]:
    place = dagster_home.storage(settings)
    database = dagster_home.database(settings)
    if database is None:
        damaged = dagster_home.damaged(settings)
        for file, problem in damaged:
            yield Diagnosis(name="storage", ok=False, detail=f"{file}: {problem}", remedy=Remedy(dagster_home.MENDED))
        if not damaged:
            yield Diagnosis(name="storage", ok=True, detail=f"Dagster's runs and events: SQLite in {place}")
        return
    try:
        version = postgres_connection.probe(database)
    except postgres_connection.PostgresUnreachable as error:
        step = Remedy("Check the address in BLOGDATA_DAGSTER_STORAGE, and whether that server runs")
        yield Diagnosis(name="storage", ok=False, detail=f"{error.what} ({place})", remedy=step)
    else:
        yield Diagnosis(name="storage", ok=True, detail=f"Dagster's runs and events: PostgreSQL {version} at {place}")


def _alerts(settings: Settings) -> Iterator[Diagnosis]:
    for channel in settings.alerts.channels:
        name = f"alerts {channel.name}"
        try:
            alert_channels.check(settings, channel)
        except PlatformError as error:
            yield Diagnosis(name=name, ok=False, detail=f"{error.what} ({error.where})", remedy=error.remedy)
        else:
            yield Diagnosis(name=name, ok=True, detail="Apprise knows its address; nothing was sent to try it")


def _kept(file: SqliteStore, settings: Settings) -> Iterator[Diagnosis]:
    file.check()
    if file.path.exists():
        yield Diagnosis(name=file.path.name, ok=True, detail=f"can be read from end to end: {file.path}")
