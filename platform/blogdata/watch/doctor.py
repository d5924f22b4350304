"""Diagnoses a deployment: checks each requirement, and names the next step of each that is not met."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from blogdata import files
from blogdata.deliver import partner
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, ShowLedger, StartService
from blogdata.ledger import ledger
from blogdata.ledger.events import EVENTS, EventLog
from blogdata.operate import dagster_home, jars, postgres, postgres_connection, secrets, spark_connect
from blogdata.operate.config import ChannelSettings, Settings
from blogdata.operate.processes import ServiceStatus
from blogdata.table.lake import Lake
from blogdata.watch import alerting
from quality.contracts import EVERY

_LEAST_GIB = 2
Finding = tuple[str, Remedy | None]
"""The state of a requirement, and the remedy; None: it is met."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    name: str
    ok: bool
    detail: str
    next_step: str
    """Empty if the requirement is met."""


def examine(settings: Settings) -> list[Diagnosis]:
    """Run all checks without changing anything; a requirement comes after those it depends on."""
    checks: list[tuple[str, Callable[[Settings], Iterator[Finding]]]] = [
        ("python", _python),
        ("disk", _disk),
        ("privacy", _privacy),
        ("secrets", _secrets),
        ("jars", _jars),
        ("spark", _spark),
        ("postgres", _postgres),
        ("tables", _tables),
        ("storage", _storage),
        *((f"alerts {channel.name}", partial(_channel, channel)) for channel in settings.alerts),
        ("partner", _partner),
        ("lake", _lake),
    ]
    findings: list[Diagnosis] = []
    for name, check in checks:
        try:
            for detail, remedy in check(settings):
                findings.append(Diagnosis(name=name, ok=remedy is None, detail=detail, next_step=str(remedy or "")))
        except PlatformError as error:
            detail = f"{error.what} ({error.where})"
            findings.append(Diagnosis(name=name, ok=False, detail=detail, next_step=error.next_step))
    return findings


def _python(settings: Settings) -> Iterator[Finding]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("dagster", "pyspark", "delta-spark", "deltalake"))
    yield f"{sys.version.split()[0]} at {sys.executable}, with {packages}", None


def _disk(settings: Settings) -> Iterator[Finding]:
    free = shutil.disk_usage(settings.home).free / 2**30
    step = Remedy("Free some space, or set BLOGDATA_HOME to another disk")
    yield f"{free:.1f} GiB free", step if free < _LEAST_GIB else None


def _privacy(settings: Settings) -> Iterator[Finding]:
    if exposed := list(map(str, files.exposed_secrets(settings.home))):
        step = Remedy(f"Run chmod 600 {shlex.join(exposed)}, and replace what somebody may have read")
        yield f"others may read secrets: {', '.join(exposed)}", step
    else:
        yield "only their owner may read files with secrets", None


def _secrets(settings: Settings) -> Iterator[Finding]:
    names = sorted({*filter(None, (settings.partner.secret, settings.postgres.secret, settings.tables.secret))})
    for name in names:
        secrets.given(settings, name)
    yield f"can be read: {', '.join(names)}" if names else "the settings name none", None


def _jars(settings: Settings) -> Iterator[Finding]:
    pinned = jars.locate(settings)
    absent = len(jars.missing(pinned)) + (not jars.engine_of(pinned).is_file())
    detail = f"{len(pinned.jars)} and the engine, in {pinned.folder}"
    if absent:
        yield f"{detail}: {absent} are missing", Remedy("Run ", StartService(name="spark"))
    else:
        yield detail, None


def _spark(settings: Settings) -> Iterator[Finding]:
    step = Remedy("Run ", StartService(name="spark"), "; it starts a new one")
    if settings.spark.remote is not None:
        step = Remedy("Check the address in SPARK_REMOTE")
    yield _service(spark_connect.status(settings), step)


def _postgres(settings: Settings) -> Iterator[Finding]:
    step = Remedy("Run ", StartService(name="postgres"))
    if settings.postgres.url:
        step = Remedy("Check the address in BLOGDATA_POSTGRES")
    yield _service(postgres.status(settings), step)


def _service(status: ServiceStatus, step: Remedy) -> Finding:
    # A stopped one is started when it is needed.
    detail = f"{status.state}: {status.detail}" + (f" at {status.url}" if status.url else "")
    return detail, None if status.state in ("running", "stopped") else step


def _tables(settings: Settings) -> Iterator[Finding]:
    address = postgres.of_tables(settings)
    if address is not None and settings.tables.any:
        server, place = postgres_connection.probe(address), postgres_connection.without_password(address.url)
        yield f"their database answers: PostgreSQL {server} at {place}", None


def _storage(settings: Settings) -> Iterator[Finding]:
    damaged = dagster_home.damaged(settings)
    for file, problem in damaged:
        yield f"{file}: {problem}", Remedy(dagster_home.MENDED)
    if not damaged:
        yield f"Dagster's runs and events: {dagster_home.storage(settings)}", None


def _channel(channel: ChannelSettings, settings: Settings) -> Iterator[Finding]:
    alerting.check(settings, channel)
    yield "Apprise knows its address; nothing was sent to try it", None


def _partner(settings: Settings) -> Iterator[Finding]:
    file = partner.outbox(settings)
    file.check()
    if file.path.exists():
        yield f"can be read from end to end: {file.path}", None


def _lake(settings: Settings) -> Iterator[Finding]:
    """Find lost tables and damaged files; reads every byte of the newest data files."""
    lake = Lake(root=str(settings.lake))
    events, whole = EventLog(lake), True
    for name, contract in EVERY.items():
        remedy = Remedy("See ", ShowLedger(dataset=name))
        try:
            lines = ledger.audit(lake, events, contract, read=True)
            problems = [f"{name} {line.entry.partition}: {line.problem}" for line in lines if line.problem]
        except PlatformError as error:
            problems, remedy = [f"{error.what} ({error.where})"], error.remedy
            if error.where == EVENTS:
                # Nothing adds up without it.
                yield problems[0], remedy
                return
        for problem in problems[:1]:
            whole = False
            more = f" (and {len(problems) - 1} more)" if problems[1:] else ""
            yield problem + more, remedy
    if whole:
        yield "every file of its tables is whole, and every account adds up", None
