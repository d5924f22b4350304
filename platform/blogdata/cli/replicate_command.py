"""`blogdata replicate`: the tables in a second lake, for staging, without a value that leads to a person."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blogdata.cli.output import TextGrid, console, existing, say_json
from blogdata.cli.sql_command import session
from blogdata.errors import refuse_unknown
from blogdata.services import exports
from quality.contracts import EVERY


def replicate(
    folder: Annotated[Path | None, typer.Argument(help="Root of staging's lake, outside of the home")] = None,
    group: Annotated[str | None, typer.Option(help="Group of the machine's users that may read it")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset; may be given again")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Remove the copies from the folder")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Copy the tables into a second lake, for staging, without values of persons; what has not changed, stays."""
    from blogdata.operations import copies
    from blogdata.operations.replicate import READER
    from blogdata.operations.replicate import replicate as copied

    settings = existing()
    refuse_unknown(dataset or [], EVERY, where="replicate")
    with exports.alone(settings):
        chosen = copies.chosen(settings, READER, folder, group, command="blogdata replicate")
        if withdraw:
            console.print(f"withdrawn: {copies.withdraw(settings, chosen):,} files of {chosen.folder}")
            return
        found = copied(settings, chosen, dataset or [], partial(session, settings))
    if as_json:
        say_json([{"dataset": name, "how": how, "written": is_new} for name, (how, is_new) in found.items()])
        return
    table = TextGrid()
    for title in ("dataset", "how", "copy"):
        table.add_column(title)
    for name, (how, is_new) in found.items():
        table.add_row(name, how, "written" if is_new else "as before")
    console.print(table)
    console.print(f"{chosen.folder}: a lake that may be read by {chosen.group}; use it with BLOGDATA_LAKE")
