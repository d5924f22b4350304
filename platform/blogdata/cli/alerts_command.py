"""`blogdata alerts`: what stands, who is told of it, what was sent, and a test of every channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, errors, existing, say_error, say_json, utc_time
from blogdata.services import deployment_alerts
from blogdata.services.config import Settings

if TYPE_CHECKING:
    from blogdata.alerts.alert import Alert
    from blogdata.alerts.record import Failure, Sent
    from blogdata.alerts.sending import Route

_SHOWN = 20


def alerts(
    test: Annotated[bool, typer.Option("--test", help="Send a test message on every channel")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document")] = False,
) -> None:
    """Show what a person should know now, which channels are told, and what was sent.

    It sends nothing, except with --test; exit code 1 when a channel fails.
    """
    settings = existing()
    if test:
        _test(settings, as_json=as_json)
        return
    from blogdata.orchestration.alerting import alert_of, observed
    from blogdata.planning import findings
    from quality.contracts import GRAPH, SERVED
    from quality.contracts.streams import streamed_inputs

    standing = [
        alert_of(finding)
        for finding in findings.standing(
            observed(settings, GRAPH, streamed_inputs(settings.checkpoints), [*SERVED.values()])
        )
    ]
    routes, record = deployment_alerts.routes(settings), deployment_alerts.record(settings)
    sent, failures = record.messages(_SHOWN), record.failures()
    told = {alert.identity: [route.name for route in routes if route.takes(alert)] for alert in standing}
    if as_json:
        say_json(
            {
                "standing": [{**alert.as_json(), "channels": told[alert.identity]} for alert in standing],
                "sent": [{**asdict(message), "at": utc_time(message.at)} for message in sent],
                "failing": [_failure(failure) for failure in failures.values()],
            }
        )
    else:
        _show(standing, told, routes)
        _show_sent(sent)
        for failure in failures.values():
            console.print(f"channel {failure.channel} fails since {utc_time(failure.since)}", style="red")
            say_error(failure.error)
    if failures:
        raise typer.Exit(1)


def _test(settings: Settings, *, as_json: bool) -> None:
    from blogdata.alerts.sending import try_out

    record = deployment_alerts.record(settings)
    routes = deployment_alerts.routes(settings)
    found = {route.name: try_out(route, settings.alerts.policy, record) for route in routes}
    if as_json:
        say_json(
            [
                {"channel": name, "ok": error is None, "error": None if error is None else str(error)}
                for name, error in found.items()
            ]
        )
    elif not found:
        console.print("no channel is configured: write [[alerts]] into blogdata.toml")
    else:
        for name, error in found.items():
            console.print(f"{'sent   ' if error is None else 'FAILED '} {name}")
            if error is not None:
                say_error(error)
    if any(found.values()):
        raise typer.Exit(1)


def tell_after_run(settings: Settings) -> bool:
    """Send what is due at the end of a command; print the error of a channel that fails.

    Args:
        settings: Settings of the deployment.

    Returns:
        False if a channel fails.
    """
    if not settings.alerts.channels:
        return True
    from blogdata.alerts.sending import AlertsNotSent
    from blogdata.orchestration.alerting import tell
    from quality.contracts import GRAPH, SERVED
    from quality.contracts.streams import streamed_inputs

    done = tell(settings, GRAPH, streamed_inputs(settings.checkpoints), [*SERVED.values()])
    failed = (*done.failures, *done.paused)
    if failed:
        say_error(AlertsNotSent(failed))
    elif done.sent:
        errors.print(f"alert messages sent: {done.sent}; see them: blogdata alerts")
    return not failed


def _show(standing: Sequence[Alert], told: Mapping[str, Sequence[str]], routes: Sequence[Route]) -> None:
    if not standing:
        console.print("nothing stands: nothing waits for a person, nothing is overdue")
    else:
        table = TextGrid()
        for title in ("severity", "what", "owner", "told to"):
            table.add_column(title, no_wrap=title != "what")
        for alert in standing:
            cells = (alert.severity.value, f"{alert.title}: {alert.text}", alert.owner)
            table.add_row(*cells, ", ".join(told[alert.identity]) or "nobody")
            table.add_row("", f"-> {alert.next_step}", "", "")
        console.print(table)
    if not routes:
        console.print("nobody is told: no channel is configured, [[alerts]] in blogdata.toml")


def _show_sent(sent: Sequence[Sent]) -> None:
    if not sent:
        return
    console.line()
    console.print(f"the last {len(sent)} messages:" if len(sent) > 1 else "the last message:")
    for message in sent:
        console.print(f"{utc_time(message.at)}  {message.channel}  {message.subject}")


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "channel": failure.channel,
        "since": utc_time(failure.since),
        "last_tried": utc_time(failure.at),
        "tries": failure.tries,
        "what": failure.error.what,
        "where": failure.error.where,
        "next_step": failure.error.next_step,
    }
