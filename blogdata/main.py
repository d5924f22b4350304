"""`blogdata`: one command for everything a person does with the platform."""

from __future__ import annotations

import errno
import sys

import typer

from blogdata.deferred import Deferred, group_of
from blogdata.output import for_the_rest, say_error
from patterns.core.errors import DiskFull, PlatformError

COMMANDS = {
    "land": Deferred(
        module="blogdata.land_commands",
        attribute="app",
        help="Put data into the landing zone.",
    ),
    "run": Deferred(
        module="blogdata.run_command",
        attribute="run",
        help="Materialize bronze to gold for what has landed.",
    ),
    "plan": Deferred(
        module="blogdata.plan_command",
        attribute="plan",
        help="Show the smallest ordered set of runs, with reasons, rows and time; then ask whether to run it.",
    ),
    "ledger": Deferred(
        module="blogdata.ledger_command",
        attribute="ledger",
        help="Show that nothing is lost: rows in = rows out + every row left out, with its reason.",
    ),
    "repair": Deferred(
        module="blogdata.repair_command",
        attribute="repair",
        help="Look at the files of every table; what is damaged is put aside, and computed again by the next run.",
    ),
    "lineage": Deferred(
        module="blogdata.lineage_command",
        attribute="lineage",
        help="Show which datasets the newest publications really read, and who owns them.",
    ),
    "stream": Deferred(
        module="blogdata.stream_command",
        attribute="stream",
        help="Take in what lands, micro-batch by micro-batch, each audited and published once; Ctrl-C ends it "
        "between two.",
    ),
    "sql": Deferred(
        module="blogdata.sql_command",
        attribute="sql",
        help="Query the lake's tables as layer.table.",
    ),
    "versions": Deferred(
        module="blogdata.versions_command",
        attribute="versions",
        help="Show which copy of a dataset was visible when.",
    ),
    "views": Deferred(
        module="blogdata.views_command",
        attribute="views",
        help="Write the views for consumers, and of what is several tables, as SQL into the lake.",
    ),
    "ui": Deferred(
        module="blogdata.ui_command",
        attribute="ui",
        help="Serve Dagster's UI, run its daemon (sensors, schedules, backfills), and keep Spark warm; Ctrl-C ends "
        "them.",
    ),
    "break": Deferred(
        module="blogdata.break_command",
        attribute="break_",
        help="Kill a writer, send bad or late rows, drop a field, stop a partner's clock: and see that no row is lost.",
    ),
    "up": Deferred(
        module="blogdata.services_commands",
        attribute="up",
        help="Start services, or find them running.",
    ),
    "down": Deferred(
        module="blogdata.services_commands",
        attribute="down",
        help="Stop services.",
    ),
    "status": Deferred(
        module="blogdata.services_commands",
        attribute="status",
        help="Show which services run; exit code 1 when one that should run does not answer.",
    ),
    "doctor": Deferred(
        module="blogdata.services_commands",
        attribute="examine",
        help="Look at everything the platform needs, and say what to fix; exit code 1 when there is something.",
    ),
}
"""Every command, in the order of the help."""
app = typer.Typer(
    name="blogdata",
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def blogdata() -> None:
    """The analytics platform of a blog: what comes in, what it becomes, and proof that nothing is lost."""


INTERRUPTED = 130
"""Exit code of a command that was told to stop."""


def main() -> None:
    """Run one command; an error of the platform is one message and its exit code, never a traceback."""
    try:
        app()
    except PlatformError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        say_error(DiskFull(str(error.filename or "?")))
        sys.exit(DiskFull.exit_code)
    except SystemExit as ended:
        # Typer makes an exit of an interrupt, and says nothing.
        if ended.code == INTERRUPTED:
            typer.echo(f"stopped; what was published stays; {for_the_rest()}", err=True)
        raise
