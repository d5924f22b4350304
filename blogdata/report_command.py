"""`blogdata report`: the blog and its data on one page, made without Spark."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.output import NOTHING_PUBLISHED, console, say_json
from errors import ConfigurationError
from services.config import Settings, load

if TYPE_CHECKING:
    from assets.report.report import Report


def report(
    out: Annotated[
        Path | None,
        typer.Option(help="Write the page to this file instead of report.html in the deployment's home"),
    ] = None,
    days: Annotated[
        int | None, typer.Option(help="Days of history, counted back from the newest one; 400 when not given")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON, and write no page")] = False,
) -> None:
    """Write one page about the blog and its data: who reads what, what waits for a person, where every row went.

    The page is one file that needs no network. Every run and the daemon's schedule write it anew.
    """
    from assets.report import report as core

    if days is not None and days < 1:
        raise ConfigurationError(what=f"{days} days are no history", where="--days", next_step="give 1 or more")
    settings = load()
    found = _computed(settings, days)
    if as_json:
        say_json(found.as_json())
        return
    if not found.has_anything:
        console.print(NOTHING_PUBLISHED, markup=False)
        return
    file = out or settings.home / core.FILE
    core.write(found, file)
    console.print(str(file), markup=False)


def made_after_a_run(settings: Settings) -> list[str]:
    """Write the page at the end of a run.

    Args:
        settings: Settings of the deployment.

    Returns:
        A warning if it could not be made; the data is published in any case.
    """
    from assets.report import report as core

    try:
        found = _computed(settings)
        if found.has_anything:
            core.write(found, settings.home / core.FILE)
    except Exception as error:  # noqa: BLE001 - whatever it is, what the run has published stays published
        return [f"the report was not made: {error}"]
    return []


def _computed(settings: Settings, days: int | None = None) -> Report:
    from assets.report import report as core
    from lake.lake import Lake
    from patterns.ingestion.readiness_marker import LandingZone

    return core.compute(
        Lake(root=str(settings.lake)),
        LandingZone(folder=settings.landing, convention=settings.ready),
        settings.checkpoints,
        now=datetime.now(timezone.utc),
        days=core.DAYS if days is None else days,
    )
