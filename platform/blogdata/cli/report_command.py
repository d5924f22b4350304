"""`blogdata report`: the blog and its data on one page, made without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blogdata.cli.output import NOTHING_PUBLISHED, Json, Outcome, console, existing, say_json
from blogdata.operate.config import Settings
from blogdata.watch.report_page import FILE


def report(
    out: Annotated[
        Path | None, typer.Option(help="Write the page to this file instead of report.html in the deployment's home")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days of history, counted back from the newest one; 400 when not given")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one page about the blog and its data.

    The page is one file that needs no network. It is written anew by every run that has something to do, and each hour
    by the daemon.
    """
    from blogdata.watch import report as core

    settings = existing()
    figures = core.compute(settings, days=days or core.DAYS)
    if as_json:
        say_json(figures.as_json())
        return
    if not figures.has_anything:
        console.print(NOTHING_PUBLISHED)
        return
    file = out or settings.home / FILE
    core.write(figures, file)
    console.print(str(file))


def made_after_a_run(settings: Settings, outcome: Outcome) -> list[str]:
    """Write the page after a run that had something to do; return a warning if it could not be made."""
    try:
        if outcome.runs or outcome.problems:
            from blogdata.watch import report as core

            figures = core.compute(settings)
            if figures.has_anything:
                core.write(figures, settings.home / FILE)
    except Exception as error:  # noqa: BLE001 - whatever it is, what the run has published stays published
        return [f"the report was not made: {error}"]
    return []
