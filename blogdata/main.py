"""`blogdata`: one command for everything a person does with the platform."""

from __future__ import annotations

import errno
import sys
from typing import Annotated, Any

import typer

from blogdata.deferred import Deferred, command_of, group_of
from blogdata.output import console, errors, for_the_rest, say_error
from blogdata.remedies import register
from errors import DiskFull, PlatformError, foreign

COMMANDS: dict[str, Deferred] = {}
"""Every command, in the order of the help."""


@command_of(COMMANDS, "land", "Put data into the landing zone.")
def _land() -> Any:
    from blogdata.land_commands import app

    return app


@command_of(COMMANDS, "run", "Materialize bronze to gold for what has landed.")
def _run() -> Any:
    from blogdata.run_command import run

    return run


@command_of(
    COMMANDS,
    "plan",
    "Show the smallest ordered set of runs, with reasons, rows and time; then ask whether to run it.",
)
def _plan() -> Any:
    from blogdata.plan_command import plan

    return plan


@command_of(COMMANDS, "ledger", "Show that nothing is lost: rows in = rows out + every row left out, with its reason.")
def _ledger() -> Any:
    from blogdata.ledger_command import ledger

    return ledger


@command_of(COMMANDS, "refused", "List the batches that failed an audit; each is a table to look at for two weeks.")
def _refused() -> Any:
    from blogdata.refused_command import refused

    return refused


@command_of(
    COMMANDS,
    "profile",
    "Profile what is new in the observed datasets: shares of nulls, distributions, references; and warn of drift.",
)
def _profile() -> Any:
    from blogdata.profile_command import profile

    return profile


@command_of(
    COMMANDS,
    "validate",
    "Validate published rows against their contracts, by Great Expectations; exit code 1 when a promise is broken.",
)
def _validate() -> Any:
    from blogdata.validate_command import validate

    return validate


@command_of(
    COMMANDS,
    "repair",
    "Look at the files of every table; what is damaged is put aside, and computed again by the next run.",
)
def _repair() -> Any:
    from blogdata.repair_command import repair

    return repair


@command_of(COMMANDS, "lineage", "Show which datasets the newest publications really read, and who owns them.")
def _lineage() -> Any:
    from blogdata.lineage_command import lineage

    return lineage


@command_of(
    COMMANDS,
    "report",
    "Write one page about the blog and its data: who reads what, what waits for a person, where every row went.",
)
def _report() -> Any:
    from blogdata.report_command import report

    return report


@command_of(
    COMMANDS,
    "stream",
    "Take in what lands, micro-batch by micro-batch, each audited and published once; Ctrl-C ends it between two.",
)
def _stream() -> Any:
    from blogdata.stream_command import stream

    return stream


@command_of(COMMANDS, "alerts", "Show what a person should know now, which channels are told, and what was sent.")
def _alerts() -> Any:
    from blogdata.alerts_command import alerts

    return alerts


@command_of(COMMANDS, "events", "List the events from outside: what waits, what started which run, what was refused.")
def _events() -> Any:
    from blogdata.events_command import events

    return events


@command_of(COMMANDS, "places", "Count the addresses whose place is known, and those that wait for an answer.")
def _places() -> Any:
    from blogdata.places_command import places

    return places


@command_of(
    COMMANDS,
    "feed",
    "Show what was sent to the partner and what waits; exit code 1 when a request waits for a person.",
)
def _feed() -> Any:
    from blogdata.feed_command import feed

    return feed


@command_of(COMMANDS, "metrics", "Print rows, ages, runs, files and findings of every dataset as Prometheus metrics.")
def _metrics() -> Any:
    from blogdata.metrics_command import metrics

    return metrics


@command_of(COMMANDS, "sql", "Query the lake's tables as layer.table.")
def _sql() -> Any:
    from blogdata.sql_command import sql

    return sql


@command_of(
    COMMANDS,
    "audience",
    "Show the page views and the visitors of any hours, pages, origins or campaigns, each visitor counted once.",
)
def _audience() -> Any:
    from blogdata.audience_command import audience

    return audience


@command_of(COMMANDS, "versions", "Show which copy of a dataset was visible when.")
def _versions() -> Any:
    from blogdata.versions_command import versions

    return versions


@command_of(COMMANDS, "views", "Write the views for consumers, and of what is several tables, as SQL into the lake.")
def _views() -> Any:
    from blogdata.views_command import views

    return views


@command_of(COMMANDS, "schema", "Change the schema of a dataset safely.")
def _schema() -> Any:
    from blogdata.schema_command import app

    return app


@command_of(
    COMMANDS,
    "ui",
    "Serve Dagster's UI, run its daemon (sensors, schedules, backfills), and keep Spark warm; Ctrl-C ends them.",
)
def _ui() -> Any:
    from blogdata.ui_command import ui

    return ui


@command_of(
    COMMANDS,
    "break",
    "Kill a writer, send bad or late rows, drop a field, stop a partner's clock: and see that no row is lost.",
)
def _break() -> Any:
    from blogdata.break_command import break_

    return break_


@command_of(COMMANDS, "up", "Start services, or find them running.")
def _up() -> Any:
    from blogdata.services_commands import up

    return up


@command_of(COMMANDS, "down", "Stop services.")
def _down() -> Any:
    from blogdata.services_commands import down

    return down


@command_of(COMMANDS, "status", "Show which services run; exit code 1 when one that should run does not answer.")
def _status() -> Any:
    from blogdata.services_commands import status

    return status


@command_of(
    COMMANDS,
    "doctor",
    "Look at everything the platform needs, and say what to fix; exit code 1 when there is something.",
)
def _doctor() -> Any:
    from blogdata.services_commands import examine

    return examine


app = typer.Typer(
    name="blogdata",
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        console.print(f"blogdata {version('blogdata')}")
        raise typer.Exit


@app.callback()
def blogdata(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version, and end")
    ] = False,
) -> None:
    """The analytics platform of a blog: what comes in, what it becomes, and proof that nothing is lost."""


INTERRUPTED = 130
"""Exit code of an interrupted command."""


def main() -> None:
    """Run one command; print a platform error as one message and exit with its code, never with a traceback."""
    register()
    try:
        app()
    except PlatformError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - printed without its message, which may quote a row
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            say_error(DiskFull(str(error.filename or "?")))
        else:
            say_error(foreign.unforeseen(error))
        sys.exit(1)
    except SystemExit as ended:
        # Typer turns an interrupt into a silent exit.
        if ended.code == INTERRUPTED:
            errors.print(f"stopped; what was published stays; {for_the_rest()}")
        raise
