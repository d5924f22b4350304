"""`blogdata`: one command for everything a person does with the platform."""

from __future__ import annotations

import errno
import sys

import click
import typer

from blogdata import (
    break_command,
    land_commands,
    ledger_command,
    lineage_command,
    plan_command,
    repair_command,
    run_command,
    services_commands,
    sql_command,
    stream_command,
    ui_command,
    versions_command,
)
from blogdata.output import for_the_rest, say_error
from patterns.core.errors import DiskFull, PlatformError

app = typer.Typer(
    name="blogdata",
    help="The analytics platform of a blog: what comes in, what it becomes, and proof that nothing is lost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(land_commands.app, name="land")
app.command("run")(run_command.run)
app.command("plan")(plan_command.plan)
app.command("ledger")(ledger_command.ledger)
app.command("repair")(repair_command.repair)
app.command("lineage")(lineage_command.lineage)
app.command("stream")(stream_command.stream)
app.command("sql")(sql_command.sql)
app.command("versions")(versions_command.versions)
app.command("ui")(ui_command.ui)
app.command("break")(break_command.break_)
for command in services_commands.app.registered_commands:
    app.registered_commands.append(command)


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
            click.echo(f"stopped; what was published stays; {for_the_rest()}", err=True)
        raise
