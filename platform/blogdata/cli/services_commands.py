"""`blogdata up`, `down`, `status` and `doctor`: the real components of a deployment."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from blogdata.cli.output import console, existing, say_json
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.secrets.secretless_connector import lasting
from blogdata.services import config, dagster_home, doctor, heartbeat, postgres, postgres_certificates, spark_connect
from blogdata.services.config import Settings
from blogdata.services.daemons import ServiceStatus
from blogdata.services.doctor import Diagnosis

_HEALTH_SECONDS = 10.0

app = typer.Typer(help="The real components: spark, postgres", no_args_is_help=True)

Names = Annotated[list[str] | None, typer.Argument(metavar="SERVICE", help="Which; all when none is named.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@dataclass(frozen=True, kw_only=True)
class _Service:
    up: Callable[[Settings], dict[str, Any]]
    down: Callable[[Settings], dict[str, Any]]
    status: Callable[[Settings], dict[str, Any]]


@app.command()
def up(services: Names = None, as_json: Json = False) -> None:
    """Start services, or find them running."""
    settings = config.load()
    _report([_SERVICES[name].up(settings) for name in _chosen(services)], as_json)


@app.command()
def down(services: Names = None, as_json: Json = False) -> None:
    """Stop services."""
    settings = existing()
    _report([_SERVICES[name].down(settings) for name in reversed(_chosen(services))], as_json)


@app.command()
def status(services: Names = None, as_json: Json = False) -> None:
    """Show which services run and what a person should know; exit code 1 when one that should run does not answer."""
    settings = existing()
    rows = [_SERVICES[name].status(settings) for name in _chosen(services)]
    if not services:
        rows += [_ui_status(settings), _standing(settings)]
    _report(rows, as_json)
    if any(row["state"] in ("silent", "dead") for row in rows):
        raise typer.Exit(1)


@app.command(name="doctor")
def examine(as_json: Json = False) -> None:
    """Look at everything the platform needs, and say what to fix; exit code 1 when there is something."""
    from blogdata.orchestration import partner

    settings = config.load()
    kept = [partner.outbox(settings)]
    findings = [*doctor.examine(settings, kept), *_lake(settings)]
    if as_json:
        say_json([finding.as_json() for finding in findings])
    else:
        for finding in findings:
            console.print(f"{'ok     ' if finding.ok else 'problem'}  {finding.name:<9} {finding.detail}")
            if not finding.ok:
                console.print(f"         {'':<9} -> {finding.next_step}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _lake(settings: Settings) -> Iterator[Diagnosis]:
    """Look for lost tables, damaged files and removed landed files; every byte of the newest data files is read."""
    from blogdata.cli.landing_findings import removed
    from blogdata.evidence import ledger
    from blogdata.evidence.events import EVENTS, EventLog
    from blogdata.lake.lake import Lake
    from quality.contracts import EVERY

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
                yield Diagnosis(name="lake", ok=False, detail=problems[0], remedy=remedy)
                return
        for problem in problems[:1]:
            whole = False
            more = f" (and {len(problems) - 1} more)" if problems[1:] else ""
            yield Diagnosis(name="lake", ok=False, detail=problem + more, remedy=remedy)
    for warning in removed(EVERY.values(), settings, events):
        yield Diagnosis(name="landing", ok=True, detail=warning)
    if whole:
        yield Diagnosis(name="lake", ok=True, detail="every file of its tables is whole, and every account adds up")


def _chosen(names: list[str] | None) -> list[str]:
    unknown = sorted(set(names or []) - set(_SERVICES))
    if unknown:
        raise ConfigurationError(
            what=f"There is no service {', '.join(unknown)}",
            where="the command line",
            next_step=f"Name one of: {', '.join(_SERVICES)}",
        )
    return [name for name in _SERVICES if not names or name in names]


def _report(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        say_json(rows)
        return
    for row in rows:
        console.print(f"{row['service']:<8} {row['state']:<8} {row['detail']}")
        for notice in row.get("notices", ()):
            console.print(f"{'':<8} note     {notice}")


def _spark_up(settings: Settings) -> dict[str, Any]:
    began = time.monotonic()
    server = spark_connect.running_server(settings)
    row = _spark_status(settings)
    detail = f"{row['detail']}, ready after {time.monotonic() - began:.1f} s"
    return {**row, "detail": detail, "notices": list(server.notices)}


def _spark_down(settings: Settings) -> dict[str, Any]:
    if settings.spark.mode != "local":
        detail = f"is not ours to stop (mode {settings.spark.mode})"
        return {"service": "spark", "state": "kept", "detail": detail}
    stopped = spark_connect.stop(settings)
    detail = "was running" if stopped else "was not running"
    return {"service": "spark", "state": "stopped", "detail": detail}


def _status_row(service: str, seen: ServiceStatus) -> dict[str, Any]:
    place = f" at {seen.url}" if seen.url else ""
    process = f", process {seen.pid}" if seen.pid else ""
    return {"service": service, **asdict(seen), "detail": f"{seen.detail}{place}{process}"}


def _spark_status(settings: Settings) -> dict[str, Any]:
    row = _status_row("spark", spark_connect.status(settings))
    roles = spark_connect.of_roles(settings)
    if roles != settings and spark_connect.is_running(roles):
        row["detail"] += f"; queries of roles: process {spark_connect.status(roles).pid}"
    return row


def _postgres_up(settings: Settings) -> dict[str, Any]:
    began = time.monotonic()
    postgres.up(settings)
    row = _postgres_status(settings)
    return {**row, "detail": f"{row['detail']}, ready after {time.monotonic() - began:.1f} s"}


def _postgres_down(settings: Settings) -> dict[str, Any]:
    if settings.postgres.url is not None:
        return {"service": "postgres", "state": "kept", "detail": "is not ours to stop (BLOGDATA_POSTGRES is set)"}
    stopped = postgres.stop(settings)
    detail = "was running; its data stay" if stopped else "was not running"
    return {"service": "postgres", "state": "stopped", "detail": detail}


def _postgres_status(settings: Settings) -> dict[str, Any]:
    row = _status_row("postgres", postgres.status(settings))
    if settings.postgres.login == "certificate":
        known = lasting(postgres_certificates.certificates(settings))
        row["notices"] = [
            f"certificates in {one.folder}, accepted until {until:%Y-%m-%d %H:%M}" for one, until in known
        ]
    return row


def _ui_status(settings: Settings) -> dict[str, Any]:
    home = settings.home / "dagster"
    url = dagster_home.ui_address(home)
    if url is None:
        return {"service": "ui", "state": "stopped", "detail": "is not served"}
    if not dagster_home.is_ui_served(home):
        return {"service": "ui", "state": "dead", "detail": f"was killed; it was at {url}"}
    try:
        with urllib.request.urlopen(f"{url}{heartbeat.PATH}", timeout=_HEALTH_SECONDS):
            return {"service": "ui", "state": "running", "detail": f"daemon at work, at {url}"}
    except urllib.error.HTTPError as error:
        error.close()
        return {"service": "ui", "state": "silent", "detail": f"the daemon leaves no heartbeat, at {url}"}
    except OSError as error:
        return {"service": "ui", "state": "silent", "detail": f"does not answer at {url}: {error}"}


def _standing(settings: Settings) -> dict[str, Any]:
    from blogdata.orchestration.alerting import observed
    from blogdata.planning import findings
    from quality.contracts import GRAPH, SERVED
    from quality.contracts.streams import streamed_inputs

    found = findings.standing(observed(settings, GRAPH, streamed_inputs(settings.checkpoints), [*SERVED.values()]))
    return {
        "service": "findings",
        "state": found[0].severity.value if found else "none",
        "detail": f"{len(found)} to look at" if found else "nothing waits for a person, nothing is overdue",
        "notices": [f"{one.title}: {one.what} ({one.owner}); {one.remedy}" for one in found],
    }


_SERVICES = {
    "spark": _Service(up=_spark_up, down=_spark_down, status=_spark_status),
    "postgres": _Service(up=_postgres_up, down=_postgres_down, status=_postgres_status),
}
