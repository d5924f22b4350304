"""`blogdata`: one command for everything a person does with the platform.

Commands whose modules are imported only when called; until then they are a name and one line of help.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from blogdata.cli.output import console, errors, for_the_rest, say_error
from blogdata.errors import DiskFull, PlatformError, foreign


@dataclass(frozen=True)
class Deferred:
    """A command at `module:name` of this package, and its help; a group is a Typer application."""

    place: str
    help: str

    def load(self, name: str) -> Any:
        command = resolve_name(f"{__package__}.{self.place}")
        if isinstance(command, typer.Typer):
            return _unwrapped(typer.main.get_command(command))
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(command)
        return _unwrapped(typer.main.get_command(alone))


def _unwrapped(command: Any) -> Any:
    """Join the lines of each paragraph of the help: Typer would break them where the source does."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for below in getattr(command, "commands", {}).values():
        _unwrapped(below)
    return command


def group_of(commands: Mapping[str, Deferred]) -> type[TyperGroup]:
    class DeferredGroup(TyperGroup):
        def __init__(self, **arguments: Any) -> None:
            listed = {name: TyperCommand(name, help=command.help) for name, command in commands.items()}
            super().__init__(**{**arguments, "commands": listed})

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            return name, commands[name].load(name) if name is not None and name in commands else command, rest

    return DeferredGroup


COMMANDS = {
    "land": Deferred("land_commands:app", "Put data into the landing zone."),
    "run": Deferred("run_command:run", "Materialize bronze to gold for what has landed."),
    "plan": Deferred("plan_command:plan", "Show what would run, with reasons and time."),
    "ledger": Deferred("ledger_command:ledger", "Show that nothing is lost: rows in = rows out + what was left out."),
    "forget": Deferred("forget_command:forget", "Forget persons: show where they are, ask, and erase them for good."),
    "job": Deferred("job_command:job", "Start an operation on the data, or list the operations."),
    "report": Deferred("report_command:report", "Write one page about the blog and its data."),
    "stream": Deferred("stream_command:stream", "Take in what lands, within seconds, until Ctrl-C."),
    "metrics": Deferred("services_commands:metrics", "Print the figures of every dataset as Prometheus metrics."),
    "sql": Deferred("sql_command:sql", "Query the lake's tables as layer.table."),
    "rights": Deferred("rights_command:rights", "Show what each job may read and write, or what each role sees."),
    "schema": Deferred("schema_command:app", "Change the schema of a dataset safely."),
    "ui": Deferred("ui_command:ui", "Serve Dagster's UI, run its daemon, and keep Spark warm, until Ctrl-C."),
    "up": Deferred("services_commands:up", "Start services, or find them running."),
    "down": Deferred("services_commands:down", "Stop services."),
    "status": Deferred("services_commands:status", "Show which services run, and what a person should know."),
    "doctor": Deferred("services_commands:examine", "Look at everything the platform needs, and say what to fix."),
}
"""Every command, in the order of the help."""

app = typer.Typer(name="blogdata", cls=group_of(COMMANDS), no_args_is_help=True, pretty_exceptions_enable=False)


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
