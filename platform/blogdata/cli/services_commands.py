"""`blogdata up`, `down`, `status` and `doctor`: the real components of a deployment."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from blogdata.cli.output import Json, console, existing, say_json, say_verbatim
from blogdata.errors import refuse_unknown
from blogdata.operate import config, dagster_home, postgres, spark_connect
from blogdata.operate.config import Settings
from blogdata.operate.processes import ServiceStatus
from blogdata.patterns.security.secretless_connector import SERVER

_HEALTH_SECONDS = 10.0

Names = Annotated[list[str] | None, typer.Argument(metavar="SERVICE", help="Which; all when none is named.")]


def up(services: Names = None, as_json: Json = False) -> None:
    """Start services, or find them running."""
    settings = config.load()
    _report([_up(name, settings) for name in _chosen(services)], as_json)


def down(services: Names = None, as_json: Json = False) -> None:
    """Stop services."""
    settings = existing()
    _report([_down(name, settings) for name in reversed(_chosen(services))], as_json)


def status(services: Names = None, as_json: Json = False) -> None:
    """Show which services run, and what a person should know.

    Exit code 1 when one that should run does not answer.
    """
    settings = existing()
    rows = [_SERVICES[name](settings) for name in _chosen(services)]
    if not services:
        rows += [_ui_status(settings), _standing(settings)]
    _report(rows, as_json)
    if any(row["state"] in ("silent", "dead") for row in rows):
        raise typer.Exit(1)


def examine(as_json: Json = False) -> None:
    """Look at everything the platform needs, and say what to fix.

    Exit code 1 when there is something.
    """
    from blogdata.watch import doctor

    settings = config.load()
    findings = doctor.examine(settings)
    if as_json:
        say_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            console.print(f"{'ok     ' if finding.ok else 'problem'}  {finding.name:<9} {finding.detail}")
            if not finding.ok:
                console.print(f"         {'':<9} -> {finding.next_step}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _chosen(names: list[str] | None) -> list[str]:
    refuse_unknown(names or [], _SERVICES, where="the command line", kind="service")
    return [name for name in _SERVICES if not names or name in names]


def _report(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        say_json(rows)
        return
    for row in rows:
        console.print(f"{row['service']:<8} {row['state']:<8} {row['detail']}")
        for notice in row.get("notices", ()):
            console.print(f"{'':<8} note     {notice}")


def _up(name: str, settings: Settings) -> dict[str, Any]:
    began = time.monotonic()
    if name == "postgres":
        postgres.up(settings)
    else:
        spark_connect.running_server(settings)
    row = _SERVICES[name](settings)
    return {**row, "detail": f"{row['detail']}, ready after {time.monotonic() - began:.1f} s"}


def _down(name: str, settings: Settings) -> dict[str, Any]:
    if (settings.postgres.url if name == "postgres" else settings.spark.remote) is not None:
        why = f"{'BLOGDATA_POSTGRES' if name == 'postgres' else 'SPARK_REMOTE'} is set"
        return {"service": name, "state": "kept", "detail": f"is not ours to stop ({why})"}
    stopped = postgres.stop(settings) if name == "postgres" else spark_connect.stop(settings)
    stays = "; its data stay" if name == "postgres" else ""
    return {"service": name, "state": "stopped", "detail": f"was running{stays}" if stopped else "was not running"}


def _status_row(service: str, seen: ServiceStatus) -> dict[str, Any]:
    place = f" at {seen.url}" if seen.url else ""
    process = f", process {seen.pid}" if seen.pid else ""
    return {"service": service, **asdict(seen), "detail": f"{seen.detail}{place}{process}"}


def _postgres_status(settings: Settings) -> dict[str, Any]:
    row = _status_row("postgres", postgres.status(settings))
    known = postgres.certificates(settings)
    if settings.postgres.login == "certificate" and known.certificate(SERVER).exists():
        row["notices"] = [f"certificates in {known.folder}, accepted until {known.end():%Y-%m-%d %H:%M}"]
    return row


_SERVICES: Mapping[str, Callable[[Settings], dict[str, Any]]] = {
    "spark": lambda settings: _status_row("spark", spark_connect.status(settings)),
    "postgres": _postgres_status,
}
"""Each service, and how it is seen."""


def _ui_status(settings: Settings) -> dict[str, Any]:
    url = dagster_home.ui_address(settings.home / "dagster")
    state, detail = "running", f"daemon at work, at {url}"
    if url is None:
        file = settings.home / "dagster" / dagster_home.UI
        was_killed = file.is_file() and file.read_text(encoding="utf-8") != ""
        state, detail = ("dead", "was killed") if was_killed else ("stopped", "is not served")
    else:
        try:
            urllib.request.urlopen(f"{url}{dagster_home.HEALTH}", timeout=_HEALTH_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
            state, detail = "silent", f"the daemon leaves no heartbeat, at {url}"
        except OSError as error:
            state, detail = "silent", f"does not answer at {url}: {error}"
    return {"service": "ui", "state": state, "detail": detail}


def _standing(settings: Settings) -> dict[str, Any]:
    from blogdata.watch import findings

    standing = findings.standing(findings.observed(settings))
    return {
        "service": "findings",
        "state": standing[0].severity.value if standing else "none",
        "detail": f"{len(standing)} to look at" if standing else "nothing waits for a person, nothing is overdue",
        "notices": [f"{finding.title}: {finding.what} ({finding.owner}); {finding.remedy}" for finding in standing],
    }


def metrics() -> None:
    """Print the figures of every dataset as Prometheus metrics."""
    from prometheus_client import generate_latest

    from blogdata.watch.findings import observed
    from blogdata.watch.metrics import registry

    say_verbatim(generate_latest(registry(observed(existing()))).decode())
